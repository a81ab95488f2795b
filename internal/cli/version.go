package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"lessor/internal/table"
	"lessor/node"
)

// version identifies this program.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version"}
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	cmd.RunE = a.run(func(*cobra.Command, []string) error {
		return display(a, readVersion(), func(t *table.Table, v version, _ time.Time) {
			t.Row(fmt.Sprintf("lessor %s (%s, %s)", v.Version, v.Go, v.Platform))
		})
	})
	return cmd
}

// readVersion returns the version that was set at build time, and what the Go toolchain recorded.
func readVersion() version {
	v := version{Version: node.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
