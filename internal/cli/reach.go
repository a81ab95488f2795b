package cli

import (
	"fmt"
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
	f.StringVar(&a.reach.token, "token", "", "access token (LESSOR_TOKEN; default: admin.token in the data folder, for the server that wrote it)")
	f.StringVar(&a.reach.data, "data", "", "the server's data folder, for its admin.token (LESSOR_DATA; default "+config.Default().Data+")")
	f.BoolVar(&a.json, "json", false, "print JSON in the shape of the API")
	for _, name := range []string{"server", "token"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // fails only for flags that do not exist
	}
	return cmd
}

// client connects to the server that flags and environment name.
func (a *app) client() (*client.Client, error) {
	to, err := a.access()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{
		Server: to.servers, Token: to.token, TokenServer: to.tokenServer, UserAgent: "lessor-cli/" + readVersion().Version,
	})
	if err != nil {
		return nil, usageError{fmt.Errorf("%w: set --server and --token, or LESSOR_SERVER and LESSOR_TOKEN", err)}
	}
	return c, nil
}

// access is which servers are called, and with which token.
type access struct {
	servers     string
	token       string
	tokenServer string // the only server that gets the token; "" = all
}

// access finds servers and token. Who gives a token means it for the servers that are called. The admin token of a data folder is
// for the server that wrote it, and no other learns it.
func (a *app) access() (access, error) {
	to := access{servers: a.reach.server, token: a.reach.token}
	if to.servers == "" {
		to.servers = a.getenv("LESSOR_SERVER")
	}
	if strings.TrimSpace(to.servers) == "" {
		to.servers = client.DefaultServer
	}
	if to.token == "" {
		to.token = a.getenv("LESSOR_TOKEN")
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
	a.withheld = found.path + " was not sent: no server wrote down beside it which loopback address it is for"
	if found.address != "" {
		a.withheld = found.path + " was not sent: it is for " + found.address + " only"
	}
	return to, nil
}
