package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) handlersCommand() *cobra.Command {
	cmd := withList(a.reaching(&cobra.Command{
		Use:   "handlers",
		Short: "List handlers and their JSON Schemas; set one",
		Example: `  lessor handlers
  lessor handlers set posting.validate @schema.json`,
	}), "List handlers, last changed first (the default)", "  lessor handlers list --json", list[lessor.Handler]{
		name: "handlers", cursor: camelCursor,
		header: []string{"HANDLER~", "UPDATED", "SCHEMA"},
		row: func(h lessor.Handler, now time.Time) []string {
			return []string{h.HandlerID, ago(h.UpdatedAt, now), fmt.Sprintf("%d bytes", len(h.Schema))}
		},
		pages: unfiltered((*client.Client).Handlers),
	}.binder(a))
	cmd.AddCommand(a.handlersSetCommand())
	return cmd
}

func (a *app) handlersSetCommand() *cobra.Command {
	var handler, done string
	read := func(_ *cobra.Command, args []string) (json.RawMessage, error) {
		handler = args[0]
		return a.readJSON("SCHEMA", args[1])
	}
	set := func(c *client.Client, ctx context.Context, schema json.RawMessage) (lessor.Handler, error) {
		h, created, err := c.SetHandler(ctx, handler, schema)
		if done = " set"; created {
			done = " registered"
		}
		return h, err
	}
	return &cobra.Command{
		Use:   "set ID SCHEMA",
		Short: "Register the JSON Schema that a handler's payloads must match",
		Long: `Set registers a JSON Schema (2020-12): JSON, @FILE, or - for standard input. References to other
documents are refused. The server checks payloads when it stores a definition or a job; it checks jobs that were stored
earlier when it grants them.`,
		Example:           "  lessor handlers set posting.validate @schema.json",
		ValidArgsFunction: completeFiles,
		RunE: show(a, read, set, func(t *table.Table, h lessor.Handler, _ time.Time) {
			t.Row(h.HandlerID + done)
		}),
	}
}
