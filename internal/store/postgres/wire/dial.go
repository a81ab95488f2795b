package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ConnectTimeout bounds one attempt to reach the server.
const ConnectTimeout = 5 * time.Second

// Dialer makes connections.
type Dialer struct {
	Server *pgconn.Config
	// Wait bounds one round trip.
	Wait time.Duration
	// Unprepared sends the text of every statement, for poolers that do not support prepared statements.
	Unprepared bool
	// Fault says what a failure means to the caller. It is given the verb of the step that failed.
	Fault func(verb string, err error) error
}

// ParseServer reads a connection string. Unless it says otherwise, only a server that accepts writes is used.
func ParseServer(url string) (*pgconn.Config, error) {
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the address: %w", err) // pgconn leaves the password out
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = ConnectTimeout
	}
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "lessor"
	}
	return c, nil
}

// Dial connects, for transactions that mostly have these limits.
func (d *Dialer) Dial(ctx context.Context, l Limits) (*Conn, error) {
	c := &Conn{
		Context: ctx, Wait: d.Wait, server: d.Server, unprepared: d.Unprepared, fault: d.Fault,
		prepared: map[Form]*pgconn.StatementDescription{},
	}
	pg, err := pgconn.ConnectConfig(ctx, d.configOf(c))
	if err != nil {
		return nil, d.Fault("connect", err)
	}
	c.pg = pg
	if err := c.adopt(l); err != nil {
		_ = c.Close() // the reason is known
		return nil, err
	}
	c.Context = context.Background()
	return c, nil
}

// errNoCancel is why a statement of a connection that commits is not cancelled.
var errNoCancel = errors.New("a commit is not cancelled")

// configOf is how c connects. The driver cancels an abandoned statement over a new connection; c gets one only if it
// cancels.
func (d *Dialer) configOf(c *Conn) *pgconn.Config {
	config := d.Server.Copy()
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c.pg != nil && !c.Cancels {
			return nil, errNoCancel
		}
		return d.Server.DialFunc(ctx, network, addr)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.warning = n.Message
		}
	}
	return config
}

const (
	endWaitTimeout = 2 * time.Second
	endWait        = "select pg_cancel_backend(pid) from pg_stat_activity where pid = $1::text::int" +
		" and usename = current_user and wait_event_type = 'Lock'"
)

// endWait ends the session's waiting for a lock, after the node has given up on the answer. The time-outs of the server
// go by its wall clock: if that was set back meanwhile, they are late, and nothing else would end two sessions that
// wait for each other. A session that waits for no lock is left alone, because it may be committing.
func (c *Conn) endWait() {
	if c.session == (Limits{}) { // the number is a pooler's
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWaitTimeout)
	defer cancel()
	other, err := pgconn.ConnectConfig(ctx, c.server)
	if err != nil {
		return // the server is out of reach
	}
	other.ExecParams(ctx, endWait, [][]byte{strconv.AppendUint(nil, uint64(c.pg.PID()), 10)}, nil, nil, nil).Read()
	_ = other.Close(ctx) // the wait has ended, or goes on
}

// closeTimeout bounds the closing of a connection.
const closeTimeout = time.Second

// Close ends the connection; the server rolls back a transaction on it.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.pg.Close(ctx)
}
