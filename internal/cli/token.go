package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "token",
		Short: "Create, list and delete access tokens",
		Long:  "Tokens say who may do what. All token commands need an admin token.",
		Example: `  lessor token create --role worker --name build-7
  lessor token create --role submitter --tenant ID --expires-in 30d
  lessor token list`,
		RunE: a.run(func(*cobra.Command, []string) error { return usagef("say create, list or delete") }),
	})
	tokens := &cobra.Command{Use: "list", Short: "List tokens, newest first"}
	a.bindTokens(tokens)
	cmd.AddCommand(a.tokenCreateCommand(), tokens, &cobra.Command{
		Use: "delete ID", Short: "Delete a token: it stops working at once",
		RunE: show(a, idArg[lessor.TokenID]("token"), order((*client.Client).DeleteToken), printWord("deleted")),
	})
	return cmd
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var r client.TokenRequest
	var tenant string
	var lasts duration
	cmd := &cobra.Command{Use: "create", Short: "Create a token and print it: it is shown only once"}
	oneOf(cmd, &r.Role, "role", "what it may do (required)", "viewer", "submitter", "worker", "operator", "admin")
	cmd.Flags().StringVar(&tenant, "tenant", "",
		"restrict the token to one tenant; from then on every call to the server needs a token")
	cmd.Flags().StringVar(&r.Name, "name", "", "name of the holder, for records")
	cmd.Flags().Var(&lasts, "expires-in", "lifetime of the token, in whole seconds (default: it never expires)")
	require(cmd, "role")
	read := func(cmd *cobra.Command, _ []string) (_ client.TokenRequest, err error) {
		r.ExpiresIn = lasts.Duration
		if r.Tenant, err = tenantFlag(tenant); err != nil {
			return r, err
		}
		_, err = seconds(cmd, "expires-in", lasts)
		return r, err
	}
	create := func(c *client.Client, ctx context.Context, r client.TokenRequest) (client.Token, error) {
		token, err := c.CreateToken(ctx, r)
		if token.TenantID != nil {
			a.note("warning: callers without a token are refused from now on, as long as a token is bound to a tenant")
		}
		return token, err
	}
	cmd.RunE = show(a, read, create, func(t *table.Table, token client.Token, _ time.Time) {
		t.Row(token.Token)
		a.note("token %s has role %s; keep it, it is not shown again", token.ID, token.Role)
	})
	return cmd
}

func (a *app) bindTokens(cmd *cobra.Command) {
	list[client.Token]{
		name: "tokens", cursor: camelCursor, whole: true,
		header: []string{"TOKEN", "NAME~", "ROLE", "EXPIRES", "AGE", "TENANT?"},
		row: func(k client.Token, now time.Time) []string {
			expires := "never"
			if !k.ExpiresAt.IsZero() {
				expires = ago(k.ExpiresAt, now)
			}
			return []string{k.ID.String(), k.Name, k.Role, expires, age(k.CreatedAt, now), idText(k.TenantID)}
		},
		pages: onePage((*client.Client).Tokens),
	}.bind(a, cmd)
}
