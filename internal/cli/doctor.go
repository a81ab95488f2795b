package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/store/sqlite"
	"lessor/internal/table"
)

// maxSkew is the allowed difference of the clocks, besides the duration of the call. The server's clock is read to the
// second. Leases do not depend on this machine's clock, but the ages that the commands print do.
const maxSkew = 2 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	cmd := a.reaching(&cobra.Command{
		Use:   "doctor",
		Short: "Check server, token, clock and store",
		Long: `Doctor prints one line for each check. The exit code is 1 if a check fails, and 3 if there is no
server.`,
	})
	var lossy string
	cmd.Flags().StringVar(&lossy, "accept-loss", "",
		"let the server start on this SQLite `FILE` although acknowledged changes are missing")
	cmd.RunE = a.run(func(cmd *cobra.Command, _ []string) error {
		if lossy != "" {
			return a.acceptLoss(cmd.Context(), lossy)
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		findings, err := a.examine(cmd.Context(), c)
		return errors.Join(a.printFindings(findings), err)
	})
	return cmd
}

// acceptLoss accepts the loss of commits that are missing in a database. The server must be stopped.
func (a *app) acceptLoss(ctx context.Context, file string) error {
	if _, err := os.Stat(file); err != nil {
		return err
	}
	lost, err := sqlite.AcceptLoss(ctx, file)
	if err != nil {
		return err
	}
	if lost == 0 {
		a.say("nothing is missing in %s", table.Clean(file))
		return nil
	}
	a.say("up to %d commits are given up; the server starts on %s as it is now", lost, table.Clean(file))
	return nil
}

// examine makes the checks. If no server can be reached, it stops after the first.
func (a *app) examine(ctx context.Context, c *client.Client) ([]client.Finding, error) {
	var all []client.Finding
	found := func(name string, err error, detail string) bool {
		if err != nil {
			detail = explain(err) + a.tokenAdvice(err)
		}
		all = append(all, client.Finding{Name: name, OK: err == nil, Detail: detail})
		return err == nil
	}
	err := c.Ready(ctx)
	found("server", err, "reachable and ready")
	if lessor.CodeOf(err) == "" && err != nil {
		return all, err
	}
	found("server clock", checkClock(ctx, c), "agrees with this machine's")
	_, err = c.Status(ctx)
	found("access", err, "may read the scheduler's state")
	store, err := c.Doctor(ctx)
	if !found("admin token", err, "is valid") {
		return all, nil
	}
	return append(all, store...), nil
}

// checkClock compares the server's clock with the time before and after the call.
func checkClock(ctx context.Context, c *client.Client) error {
	before := time.Now()
	at, err := c.Clock(ctx)
	if err != nil {
		return err
	}
	if skew := max(before.Sub(at), time.Until(at)); skew > maxSkew {
		return fmt.Errorf("the server's clock differs from this machine's by %s: check both against a time server",
			table.Span(skew))
	}
	return nil
}

func (a *app) printFindings(findings []client.Finding) error {
	if a.json {
		if err := a.printJSON(struct {
			Findings []client.Finding `json:"findings"`
		}{findings}); err != nil {
			return err
		}
	}
	t, bad := a.table(), 0
	for _, f := range findings {
		mark := "ok"
		if !f.OK {
			mark = "WRONG"
			bad++
		}
		if !a.json {
			t.Row(mark, f.Name, f.Detail)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return refusedError{fmt.Errorf("%d of %d checks found something wrong", bad, len(findings))}
	}
	return nil
}
