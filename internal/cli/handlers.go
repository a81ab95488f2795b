package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) handlersCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "handlers",
		Short: "List handlers and their JSON Schemas; set one",
		Example: `  lessor handlers
  lessor handlers set posting.validate @schema.json`,
		Args: cobra.NoArgs,
	})
	a.listsHandlers(cmd)
	list := &cobra.Command{Use: "list", Short: "List handlers, the last that was set first (the default)", Example: "  lessor handlers list --json", Args: cobra.NoArgs}
	a.listsHandlers(list)
	cmd.AddCommand(list, a.handlersSetCommand())
	return cmd
}

// listsHandlers makes cmd the list of handlers: `handlers` and `handlers list` are the same.
func (a *app) listsHandlers(cmd *cobra.Command) {
	var f listFlags
	f.add(cmd, "handlers")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		now := time.Now()
		return list[lessor.Handler]{
			name: "handlers", cursor: kernelCursor,
			header: []string{"HANDLER", "UPDATED", "SCHEMA"},
			row: func(h lessor.Handler) []string {
				return []string{h.HandlerID, ago(h.UpdatedAt, now), fmt.Sprintf("%d bytes", len(h.Schema))}
			},
			page: func(limit int, cursor string) ([]lessor.Handler, string, error) {
				return c.Handlers(cmd.Context(), limit, cursor)
			},
		}.show(a, f)
	})
}

func (a *app) handlersSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set ID SCHEMA",
		Short: "Register the JSON Schema that a handler's payloads must meet",
		Long: `Set registers a JSON Schema (2020-12): JSON, @FILE, or - for standard input. References that leave the document are
refused. Payloads are checked when a definition or a job is stored, and jobs that were stored before when they are granted.`,
		Example: "  lessor handlers set posting.validate @schema.json",
		Args:    cobra.ExactArgs(2),
		RunE: a.run(func(cmd *cobra.Command, args []string) error {
			schema, err := a.readJSON("SCHEMA", args[1])
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			h, created, err := c.SetHandler(cmd.Context(), args[0], schema)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(h)
			case created:
				a.say("%s registered", clean(h.HandlerID))
			default:
				a.say("%s set", clean(h.HandlerID))
			}
			return nil
		}),
	}
}
