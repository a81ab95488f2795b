package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lessor/internal/config"
	"lessor/internal/executor"
)

// maxToken bounds what is read as a token: none is longer.
const maxToken = 4096

// shimCommand is how `lessor work` starts the process that holds one command. It is not for people.
func (a *app) shimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "shim FOLDER",
		Short:  "Hold one command; started by `lessor work`",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		token, err := io.ReadAll(io.LimitReader(a.In, maxToken))
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		return executor.RunShim(cmd.Context(), executor.ShimConfig{
			Folder: args[0], Token: string(token), Environ: a.Environ, Log: a.logger(config.Default()),
		})
	})
	return cmd
}
