// A client on the Go SDK: `--mode auto` speaks the newest revision that both sides know, another mode names the revision.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os/exec"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	root    = "file:///home/ada"
	watched = "test://watched-resource"
)

// host answers what servers ask, and keeps what they tell.
type host struct {
	mutex    sync.Mutex
	action   string
	logged   []string
	progress []float64
	updated  []string
}

func (h *host) keep(change func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	change()
}

func (h *host) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "a-model", Content: &mcp.TextContent{Text: "Paris"}}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if h.action != "accept" {
				return &mcp.ElicitResult{Action: h.action}, nil
			}
			form := map[string]any{"username": "Ada", "email": "ada@example.com"}
			return &mcp.ElicitResult{Action: h.action, Content: form}, nil
		},
		LoggingMessageHandler: func(_ context.Context, request *mcp.LoggingMessageRequest) {
			text, _ := request.Params.Data.(string)
			h.keep(func() { h.logged = append(h.logged, text) })
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			h.keep(func() { h.progress = append(h.progress, request.Params.Progress) })
		},
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			h.keep(func() { h.updated = append(h.updated, request.Params.URI) })
		},
	}
}

func transport(kind, target string) mcp.Transport {
	switch kind {
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: target}
	case "stdio":
		var command []string
		if err := json.Unmarshal([]byte(target), &command); err != nil {
			panic(err)
		}
		return &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
	default:
		return &mcp.StreamableClientTransport{Endpoint: target}
	}
}

func main() {
	kind := flag.String("transport", "streamable", "streamable, sse or stdio")
	target := flag.String("target", "", "a URL, or for stdio a JSON array: the command line")
	mode := flag.String("mode", "auto", "auto, or the revision to speak")
	which := flag.String("checks", "all", "all, or hidden: of tools that a budget hides")
	flag.Parse()

	h := &host{action: "accept"}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1.0.0"}, h.options())
	client.AddRoots(&mcp.Root{URI: root, Name: "Home"})
	options := &mcp.ClientSessionOptions{}
	if *mode != "auto" {
		options.ProtocolVersion = *mode
	}
	// The context of Connect must live as long as the session: streams hang on it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	session, err := client.Connect(ctx, transport(*kind, *target), options)
	if err != nil {
		report("connect", false, err.Error())
		return
	}
	revision := session.InitializeResult().ProtocolVersion
	report("connect", true, revision)
	c := checks{session, h, revision >= "2026-07-28"}
	if *which == "hidden" {
		c.runHidden()
	} else {
		c.run()
	}
	run("close", func(context.Context) error { return session.Close() })
}
