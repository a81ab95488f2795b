package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/scheduler"
)

// A commit waits for the synchronous standbys, if there are any. Whoever cancels the waiting (a cancel request, an administrator, a
// shutdown) has the server commit on its own: it answers COMMIT, with a warning, and a standby that is promoted then knows nothing of it.
// So we cancel no commit, and one with a warning counts as one whose answer was lost: it is settled by a later commit that
// did reach the standbys, since these get everything in order.

// errNoCancel is why a statement of a connection that commits is not cancelled.
var errNoCancel = errors.New("a commit is not cancelled")

// sealed is how c connects: the driver cancels what it gives up on through a new connection, which c gets only if it cancels.
func (d *dialer) sealed(c *conn) *pgconn.Config {
	config := d.config.Copy()
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c.pg != nil && !c.cancels {
			return nil, errNoCancel
		}
		return d.config.DialFunc(ctx, network, addr)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.warning = n
		}
	}
	return config
}

// warned is the fault of a commit that came with a warning, nil if it came without: whatever it says, the commit may be on this server alone.
func (c *conn) warned() error {
	if c.warning == nil {
		return nil
	}
	return fmt.Errorf("commit: %w: the server warned: %s", scheduler.ErrUnreachable, c.warning.Message)
}
