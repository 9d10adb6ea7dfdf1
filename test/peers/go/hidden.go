package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server of 2026-07-28 and one of 2025-11-25; the budget of their workspace hides all their tools.
var hiddenServers = []string{"demo", "scripted"}

func (c checks) runHidden() {
	run("short-list", c.shortList)
	run("find-hidden", c.findHidden)
	run("hidden-progress", eachServer(c.hiddenProgress))
	run("hidden-question", eachServer(c.hiddenQuestion))
	run("hidden-by-name", eachServer(c.hiddenByName))
}

func eachServer(body func(context.Context, string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, server := range hiddenServers {
			if err := body(ctx, server); err != nil {
				return fmt.Errorf("%s: %w", server, err)
			}
		}
		return nil
	}
}

// through is what call_tool is given to call a hidden tool.
func through(tool string, given map[string]any) map[string]any {
	return map[string]any{"name": tool, "arguments": given}
}

func (c checks) shortList(ctx context.Context) error {
	var names []string
	for tool, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	return expect(names, []string{"search_tools", "describe_tool", "call_tool"})
}

func (c checks) findHidden(ctx context.Context) error {
	found, err := c.call(ctx, "search_tools", map[string]any{"query": "report progress while a tool works"})
	if err != nil {
		return err
	}
	for _, server := range hiddenServers {
		if err := expectIn(server+"__test_tool_with_progress(", found); err != nil {
			return err
		}
	}
	return c.text("describe_tool", map[string]any{"name": "demo__test_elicitation"}, `"inputSchema"`)(ctx)
}

func (c checks) hiddenProgress(ctx context.Context, server string) error {
	c.host.keep(func() { c.host.progress = nil })
	params := &mcp.CallToolParams{
		Name:      "call_tool",
		Arguments: through(server+"__test_tool_with_progress", map[string]any{}),
	}
	params.SetProgressToken("hidden-" + server)
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

func (c checks) hiddenQuestion(ctx context.Context, server string) error {
	given := through(server+"__test_elicitation", map[string]any{"message": "Who are you?"})
	return c.text("call_tool", given, "Ada")(ctx)
}

func (c checks) hiddenByName(ctx context.Context, server string) error {
	return c.text(server+"__test_elicitation", map[string]any{"message": "Who are you?"}, "Ada")(ctx)
}
