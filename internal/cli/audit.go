package cli

import (
	"github.com/spf13/cobra"

	"lessor"
)

func (a *app) auditCommand() *cobra.Command {
	var filter lessor.AuditFilter
	var f listFlags
	cmd := a.reaching(&cobra.Command{
		Use:   "audit",
		Short: "List who changed what",
		Long:  "Audit lists who changed which definition, tenant, token or capacity, newest first; with --json also how it was before and after. It needs an admin token.",
		Example: `  lessor audit
  lessor audit --object definition/books.nightly --json`,
		Args: cobra.NoArgs,
	})
	cmd.Flags().StringVar(&filter.Actor, "actor", "", "only what this actor changed")
	cmd.Flags().StringVar(&filter.Object, "object", "", "only changes of this object, like definition/ID")
	f.add(cmd, "entries")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		return list[lessor.Audited]{
			name: "audit", noun: "entries", cursor: kernelCursor,
			header: []string{"AT", "ACTOR", "ACTION", "OBJECT", "TRACE"},
			row: func(e lessor.Audited) []string {
				return []string{e.At.String(), e.Actor, e.Action, e.Object, e.TraceID}
			},
			page: func(limit int, cursor string) ([]lessor.Audited, string, error) {
				filter.Limit, filter.Cursor = limit, cursor
				return c.Audit(cmd.Context(), filter)
			},
		}.show(a, f)
	})
	return cmd
}
