package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const bigResult = 900_000

type checks struct {
	session  *mcp.ClientSession
	host     *host
	isModern bool
}

func (c checks) run() {
	run("list-tools", c.listTools)
	run("echo", c.text("example-echo", map[string]any{"message": "Grüße 你好"}, "Echo: Grüße 你好"))
	run("structured", c.structured)
	run("progress", c.progress)
	run("log", c.log)
	run("tool-error", c.toolError)
	run("error-code", c.errorCode)
	run("elicitation-accept", c.elicitation("accept"))
	run("elicitation-decline", c.elicitation("decline"))
	run("sampling", c.text("test_sampling", map[string]any{"prompt": "Capital of France?"}, "Paris"))
	run("roots", c.text("test_input_required_result_list_roots", nil, root))
	run("read-resource", c.readResource)
	run("resource-updated", c.resourceUpdated)
	run("prompt", c.prompt)
	run("completion", c.completion)
	if !c.isModern {
		run("ping", func(ctx context.Context) error { return c.session.Ping(ctx, nil) })
	}
	run("cancellation", c.cancellation)
	run("big-result", c.bigResult)
}

func (c checks) call(ctx context.Context, name string, given map[string]any) (string, error) {
	params := &mcp.CallToolParams{Name: name}
	if given != nil { // a nil map would be sent as null
		params.Arguments = given
	}
	result, err := c.session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	return textOf(result), nil
}

func textOf(result *mcp.CallToolResult) string {
	var text strings.Builder
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			text.WriteString(block.Text)
		}
	}
	return text.String()
}

func (c checks) text(name string, given map[string]any, wanted string) func(context.Context) error {
	return func(ctx context.Context) error {
		text, err := c.call(ctx, name, given)
		if err != nil {
			return err
		}
		return expectIn(wanted, text)
	}
}

func (c checks) listTools(ctx context.Context) error {
	numbered := 0
	for tool, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(tool.Name, "numbered_") {
			numbered++
		}
	}
	return expect(numbered, 150)
}

func (c checks) structured(ctx context.Context) error {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_structured_content"})
	if err != nil {
		return err
	}
	text, _ := json.Marshal(result.StructuredContent)
	return expect(string(text), `{"conditions":"sunny","temperature":22.5}`)
}

func (c checks) progress(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "test_tool_with_progress"}
	params.SetProgressToken("progress-1")
	if _, err := c.session.CallTool(ctx, params); err != nil {
		return err
	}
	heard := func() (values []float64) {
		c.host.keep(func() { values = slices.Clone(c.host.progress) })
		return values
	}
	if err := until(ctx, func() bool { return len(heard()) >= 3 }); err != nil {
		return fmt.Errorf("%w, only %v", err, heard())
	}
	return expect(heard(), []float64{0, 50, 100})
}

func (c checks) log(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "test_tool_with_logging"}
	if c.isModern { // from 2026-07-28 on each request names the level; the SDK leaves that to its user
		params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}
	}
	if _, err := c.session.CallTool(ctx, params); err != nil {
		return err
	}
	heard := func() (lines []string) {
		c.host.keep(func() { lines = slices.Clone(c.host.logged) })
		return lines
	}
	if err := until(ctx, func() bool { return len(heard()) >= 3 }); err != nil {
		return fmt.Errorf("%w, only %v", err, heard())
	}
	return expect(strings.Join(heard(), "|"), "Tool execution started|Tool processing data|Tool execution completed")
}

func (c checks) toolError(ctx context.Context) error {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_error_handling"})
	if err != nil {
		return err
	}
	return expect(result.IsError, true)
}

func (c checks) errorCode(ctx context.Context) error {
	_, err := c.call(ctx, "fail_with_code", nil)
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) {
		return fmt.Errorf("expected a JSON-RPC error, got %v", err)
	}
	return expect(failure.Code, -32050)
}

func (c checks) elicitation(action string) func(context.Context) error {
	return func(ctx context.Context) error {
		c.host.action = action
		return c.text("test_elicitation", map[string]any{"message": "Who are you?"}, action)(ctx)
	}
}

func (c checks) readResource(ctx context.Context) error {
	read, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"})
	if err != nil {
		return err
	}
	return expectIn("static", read.Contents[0].Text)
}

func (c checks) resourceUpdated(ctx context.Context) error {
	if err := c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: watched}); err != nil {
		return err
	}
	// From 2026-07-28 on the SDK ignores the acknowledgement, so a first update may come before the subscription stands.
	for isTold := false; !isTold; {
		if _, err := c.call(ctx, "test_trigger_resource_update", nil); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		c.host.keep(func() { isTold = slices.Contains(c.host.updated, watched) })
	}
	return nil
}

func (c checks) prompt(ctx context.Context) error {
	given := map[string]string{"arg1": "one", "arg2": "two"}
	prompt, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: given})
	if err != nil {
		return err
	}
	block, _ := prompt.Messages[0].Content.(*mcp.TextContent)
	return expectIn("arg1='one', arg2='two'", block.Text)
}

func (c checks) completion(ctx context.Context) error {
	completed, err := c.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"},
		Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "par"},
	})
	if err != nil {
		return err
	}
	return expect(slices.Contains(completed.Completion.Values, "paris"), true)
}

func (c checks) cancellation(ctx context.Context) error {
	token := map[string]any{"token": fmt.Sprint(time.Now().UnixNano())}
	waiting, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if _, err := c.call(waiting, "wait_for_cancel", token); err == nil {
		return errors.New("the call was answered")
	}
	text, err := c.call(ctx, "was_cancelled", token)
	if err != nil {
		return err
	}
	return expect(text, "cancelled")
}

func (c checks) bigResult(ctx context.Context) error {
	text, err := c.call(ctx, "big_result", map[string]any{"characters": bigResult})
	if err != nil {
		return err
	}
	return expect(len(text), bigResult)
}
