package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lessor/client"
	"lessor/internal/config"
)

// reachFlags say where the server is and who asks.
type reachFlags struct {
	server string
	token  string
	data   string
}

// reaching gives a command, and those below it, the flags of everything that talks to a server.
func (a *app) reaching(cmd *cobra.Command) *cobra.Command {
	f := cmd.PersistentFlags()
	f.StringVar(&a.reach.server, "server", "", "server's address, or several separated by commas (LESSOR_SERVER; default "+client.DefaultServer+")")
	f.StringVar(&a.reach.token, "token", "", "access token (LESSOR_TOKEN; default: admin.token in the data folder, if it is there)")
	f.StringVar(&a.reach.data, "data", "", "the server's data folder, for its admin.token (LESSOR_DATA; default "+config.Default().Data+")")
	f.BoolVar(&a.json, "json", false, "print JSON in the shape of the API")
	for _, name := range []string{"server", "token"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // fails only for flags that do not exist
	}
	return cmd
}

// client connects to the server that flags and environment name.
func (a *app) client() (*client.Client, error) {
	server := a.reach.server
	if server == "" {
		server = a.getenv("LESSOR_SERVER")
	}
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Server: server, Token: token, UserAgent: "lessor-cli/" + readVersion().Version})
	if err != nil {
		return nil, usageError{fmt.Errorf("%w: set --server and --token, or LESSOR_SERVER and LESSOR_TOKEN", err)}
	}
	return c, nil
}

// token finds the access token. A token file that is not there, or not ours to read, means none unless its folder was
// named: on a loopback address most calls need no token.
func (a *app) token() (string, error) {
	if a.reach.token != "" {
		return a.reach.token, nil
	}
	if t := a.getenv("LESSOR_TOKEN"); t != "" {
		return t, nil
	}
	data := a.reach.data
	if data == "" {
		data = a.getenv("LESSOR_DATA")
	}
	if data == "" {
		data = config.Default().Data
	}
	raw, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil && a.reach.data != "" && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the admin token: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
