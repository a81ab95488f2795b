package cli

import (
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "token",
		Short: "Create, list and delete access tokens",
		Long:  "Tokens say who may do what. All of this needs an admin token.",
		Example: `  lessor token create --role worker --name build-7
  lessor token create --role submitter --tenant 11111111-1111-4111-8111-111111111111 --expires-in 30d
  lessor token list`,
		Args: cobra.NoArgs,
		RunE: a.run(func(*cobra.Command, []string) error { return usagef("say create, list or delete") }),
	})
	remove := &cobra.Command{
		Use: "delete ID", Short: "Delete a token: it stops working at once", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(a.deleteToken),
	}
	list := &cobra.Command{Use: "list", Short: "List tokens, newest first", Args: cobra.NoArgs, RunE: a.run(a.listTokens)}
	cmd.AddCommand(a.tokenCreateCommand(), list, remove)
	return cmd
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var r client.TokenRequest
	var tenant string
	var lasts duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it: it is shown only once",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&r.Role, "role", "", "viewer, submitter, worker, operator or admin (required)")
	cmd.Flags().StringVar(&tenant, "tenant", "", "restrict the token to one tenant; from then on every call to the server needs a token")
	cmd.Flags().StringVar(&r.Name, "name", "", "name of its holder, for records")
	cmd.Flags().Var(&lasts, "expires-in", "end it by itself after this long, in whole seconds (default: never)")
	if err := cmd.MarkFlagRequired("role"); err != nil {
		panic(err) // the flag was just made
	}
	completes(cmd, "role", oneOf("viewer", "submitter", "worker", "operator", "admin"))
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) (err error) {
		if r.Tenant, err = tenantFlag(tenant); err != nil {
			return err
		}
		if _, err := seconds(cmd, "expires-in", lasts); err != nil {
			return err
		}
		r.ExpiresIn = lasts.Duration
		return a.createToken(cmd, r)
	})
	return cmd
}

func (a *app) createToken(cmd *cobra.Command, r client.TokenRequest) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	token, err := c.CreateToken(cmd.Context(), r)
	switch {
	case err != nil:
		return err
	case a.json:
		a.warnTokenless(token)
		return a.printJSON(token)
	}
	a.say("%s", token.Token)
	a.warnTokenless(token)
	a.note("token %s has role %s; keep it, it is not shown again", token.ID, token.Role)
	return nil
}

// warnTokenless says what a token of a tenant does to those who have none.
func (a *app) warnTokenless(t client.Token) {
	if t.TenantID != nil {
		a.note("warning: callers without a token are refused from now on, as long as a token is bound to a tenant")
	}
}

func (a *app) listTokens(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	tokens, err := c.Tokens(cmd.Context())
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Tokens     []client.Token `json:"tokens"`
			NextCursor *string        `json:"nextCursor"`
		}{Tokens: append([]client.Token{}, tokens...)})
	}
	now := time.Now()
	t := newTable(a.Out)
	t.row("TOKEN", "NAME", "ROLE", "TENANT", "AGE", "EXPIRES")
	for _, k := range tokens {
		tenant := ""
		if k.TenantID != nil {
			tenant = k.TenantID.String()
		}
		expires := "never"
		if !k.ExpiresAt.IsZero() {
			expires = ago(k.ExpiresAt, now)
		}
		t.row(k.ID.String(), k.Name, k.Role, tenant, age(k.CreatedAt, now), expires)
	}
	return t.flush()
}

func (a *app) deleteToken(cmd *cobra.Command, args []string) error {
	u, err := parseID("token", args[0])
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if err := c.DeleteToken(cmd.Context(), lessor.TokenID{UUID: u}); err != nil {
		return err
	}
	return a.done("deleted")
}
