package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) logLevelCommand() *cobra.Command {
	levels := []string{"debug", "info", "warn", "error"}
	cmd := a.reaching(&cobra.Command{
		Use:   "log-level [debug|info|warn|error]",
		Short: "Show or change the least level that a server logs",
		Long: `Log-level shows the least level that a server logs, or changes it until the server stops. It needs an admin token. Of
several nodes it is the one that --server names.`,
		Example: "  lessor log-level debug",
		Args:    cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs), ValidArgs: levels,
	})
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		var level string
		if len(args) == 0 {
			level, err = c.LogLevel(cmd.Context())
		} else {
			level, err = c.SetLogLevel(cmd.Context(), args[0])
		}
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(map[string]string{"level": level})
		}
		a.say("%s", level)
		return nil
	})
	return cmd
}
