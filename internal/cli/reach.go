package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lessor/client"
	"lessor/internal/config"
)

// reachFlags say which server is called, and with which token.
type reachFlags struct {
	server string
	token  string
	data   string
}

// reaching adds the flags of all commands that call a server.
func (a *app) reaching(cmd *cobra.Command) *cobra.Command {
	f := cmd.PersistentFlags()
	f.StringVar(&a.reach.server, "server", "",
		"address of the server, or several separated by commas (LESSOR_SERVER; default "+client.DefaultServer+")")
	f.StringVar(&a.reach.token, "token", "",
		"access token (LESSOR_TOKEN; default: admin.token in the data folder, for the server that wrote it)")
	f.StringVar(&a.reach.data, "data", "",
		"the server's data folder, for its admin.token (LESSOR_DATA; default "+config.Default().Data+")")
	f.BoolVar(&a.json, "json", false, "print JSON in the shape of the API")
	completes(cmd, "server", cobra.NoFileCompletions)
	completes(cmd, "token", cobra.NoFileCompletions)
	return cmd
}

// client connects to the server that flags and environment name.
func (a *app) client() (*client.Client, error) {
	to, err := a.access()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{
		Server: to.servers, Token: to.token, TokenServer: to.tokenServer,
		UserAgent: "lessor-cli/" + readVersion().Version,
	})
	if err != nil {
		return nil, usageError{fmt.Errorf("%w: set --server and --token, or LESSOR_SERVER and LESSOR_TOKEN", err)}
	}
	return c, nil
}

// access names the servers to call and the token to send.
type access struct {
	servers     string
	token       string
	tokenServer string // the only server that receives the token; "" = all
}

// access finds servers and token. A token from a flag or the environment is sent to all servers. The admin token of a
// data folder is sent only to the server that wrote it.
func (a *app) access() (access, error) {
	to := access{
		servers: cmp.Or(a.reach.server, a.getenv("LESSOR_SERVER")),
		token:   cmp.Or(a.reach.token, a.getenv("LESSOR_TOKEN")),
	}
	if strings.TrimSpace(to.servers) == "" {
		to.servers = client.DefaultServer
	}
	if to.token != "" {
		return to, nil
	}
	found, err := a.adminToken()
	if err != nil || found.token == "" {
		return to, err
	}
	to.servers, to.tokenServer = found.match(to.servers)
	if to.tokenServer != "" {
		to.token = found.token
		return to, nil
	}
	a.withheld = found.path + " was not sent: no server wrote its loopback address beside it"
	if found.address != "" {
		a.withheld = found.path + " was not sent: it is for " + found.address + " only"
	}
	return to, nil
}
