package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout bounds one attempt to reach the server.
	connectTimeout = 5 * time.Second
	// patience is how much longer than the server's own statement time-out an answer is waited for: beyond it the server or
	// the way to it is gone.
	patience = 5 * time.Second
)

// conn is one connection, and what its next round trip carries: statements are added and then sent together.
type conn struct {
	pg         *pgconn.PgConn
	ctx        context.Context // ends the waiting for answers
	wait       time.Duration   // for one round trip
	unprepared bool
	age        int64 // see origin
	prepared   map[form]*pgconn.StatementDescription

	session limits // that its session is pinned to; none if it is not ours

	// cancels says that giving up on an answer cancels its statement. That of a commit is never cancelled; see sealed.
	cancels bool
	// warning is the last one that the server sent in this transaction.
	warning *pgconn.Notice

	pipe  *pgconn.Pipeline // if statements are sent in parts; see stream
	parts [][]step
	batch *pgconn.Batch
	steps []step
	err   error // why something could not be added
}

// step is one statement of a round trip.
type step struct {
	verb string
	stmt *statement
	// rows are its first parameters, if it is one on rows.
	rows *rows
	// each is called with every row; nil = they are passed over.
	each func(*row) error
	// tag gets what the server says it did.
	tag *pgconn.CommandTag
	// guard is what a division by zero in the statement means.
	guard error
}

// maxPrepared bounds how many statements are prepared on a connection. Beyond it rows go as if all their columns differed.
const maxPrepared = 256

// dialer makes connections.
type dialer struct {
	config     *pgconn.Config
	unprepared bool
	wait       time.Duration
}

func newDialer(cfg Config) (*dialer, error) {
	c, err := pgconn.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("read the address: %w", err) // pgconn leaves the password out
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.ValidateConnect == nil { // nothing is decided from a replica
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "lessor"
	}
	return &dialer{config: c, unprepared: cfg.Unprepared, wait: cfg.StatementTimeout + patience}, nil
}

// dial connects, for transactions that mostly have these limits.
func (d *dialer) dial(ctx context.Context, l limits) (*conn, error) {
	c := &conn{ctx: ctx, wait: d.wait, unprepared: d.unprepared, prepared: map[form]*pgconn.StatementDescription{}}
	pg, err := pgconn.ConnectConfig(ctx, d.sealed(c))
	if err != nil {
		return nil, fault("connect", err)
	}
	c.pg = pg
	if err := c.adopt(l); err != nil {
		_ = c.close() // the reason is known
		return nil, err
	}
	c.ctx = context.Background()
	return c, nil
}

// closeTimeout bounds a farewell.
const closeTimeout = time.Second

// close ends the connection; a transaction on it is rolled back by the server.
func (c *conn) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.pg.Close(ctx)
}

// inBinary is the form of all parameters and results.
var inBinary = []int16{1}

// add puts a statement into the next round trip.
func (c *conn) add(s step, params ...[]byte) {
	if c.err != nil {
		return
	}
	f := form{stmt: s.stmt}
	if s.rows != nil {
		f.shape = s.rows.shape()
		if len(c.prepared) >= maxPrepared && c.prepared[f] == nil {
			f.shape = anyShape
		}
		params = append(s.rows.in(f.shape), params...)
	}
	described := c.prepared[f]
	if described == nil && !c.unprepared {
		if c.err = c.settle(); c.err != nil {
			return
		}
		if described, c.err = c.prepare(f); c.err != nil {
			c.err = fault(s.verb+": prepare", c.err)
			return
		}
	}
	c.steps = append(c.steps, s)
	if c.pipe != nil {
		c.addToPipe(f, described, params)
		return
	}
	if c.batch == nil {
		c.batch = &pgconn.Batch{}
	}
	if c.unprepared {
		c.batch.ExecParams(f.text(), params, nil, inBinary, inBinary)
	} else {
		c.batch.ExecStatement(described, params, inBinary, inBinary)
	}
}

func (c *conn) prepare(f form) (*pgconn.StatementDescription, error) {
	c.deadline()
	described, err := c.pg.Prepare(c.ctx, fmt.Sprintf("lessor_%d", len(c.prepared)), f.text(), nil)
	if err == nil {
		c.prepared[f] = described
	}
	return described, err
}

// deadline bounds the next round trip, without the goroutine that a context with a deadline would cost.
func (c *conn) deadline() { _ = c.pg.Conn().SetDeadline(time.Now().Add(c.wait)) } // a closed connection says so when it is used

// trip is a round trip whose answers are still to be read.
type trip struct {
	conn    *conn
	steps   []step
	results *pgconn.MultiResultReader // nil = there is nothing to read
	pipe    *pgconn.Pipeline          // instead of steps and results, if it was sent in parts
	parts   [][]step
	err     error
}

// start sends what was added.
func (c *conn) start() trip {
	if c.pipe != nil {
		return c.startPipe()
	}
	t := trip{conn: c, steps: c.steps, err: c.err}
	batch := c.batch
	c.forget()
	if batch == nil || t.err != nil {
		return t
	}
	c.deadline()
	t.results = c.pg.ExecBatch(c.ctx, batch)
	return t
}

// finish reads the answers. It returns the first fault: the server passes over what stands behind a statement that failed.
// A function that refuses a row stops being called, and the rest is read for nothing; its error comes back as it is.
func (t trip) finish() error {
	if t.pipe != nil {
		return t.finishPipe()
	}
	if t.results == nil {
		return t.err
	}
	var stop error
	n := 0
	for ; t.results.NextResult(); n++ {
		tag, refused, bad := read(t.results.ResultReader(), t.steps[n].each)
		if bad != nil {
			break // Close has it too
		}
		if stop == nil && refused != nil {
			stop = refusal{refused}
		}
		if t.steps[n].tag != nil {
			*t.steps[n].tag = tag
		}
	}
	if bad := t.results.Close(); bad != nil {
		return t.conn.blame(t.steps[min(n, len(t.steps)-1)], bad)
	}
	return stop
}

// send makes the round trip.
func (c *conn) send() error { return c.start().finish() }

// pass makes a round trip of what add adds, before what was added already.
func (c *conn) pass(add func()) error {
	if c.pipe != nil {
		add()
		return c.settle()
	}
	batch, steps, err := c.batch, c.steps, c.err
	c.forget()
	add()
	bad := c.send()
	c.batch, c.steps, c.err = batch, steps, err
	return bad
}

// refusal is the error of a function that did not like a row: nothing against the connection.
type refusal struct{ error }

// read hands the rows of one result on.
func read(r *pgconn.ResultReader, each func(*row) error) (tag pgconn.CommandTag, refused, bad error) {
	var one row
	for r.NextRow() {
		if each != nil && refused == nil {
			one = row{values: r.Values()}
			refused = each(&one)
		}
	}
	tag, bad = r.Close()
	return tag, refused, bad
}

// blame says which step failed, and what that means to the scheduler.
func (c *conn) blame(s step, err error) error {
	var pg *pgconn.PgError
	isServer := errors.As(err, &pg)
	switch {
	case isServer && s.guard != nil && pg.Code == divisionByZero:
		return fmt.Errorf("%s: %w", s.verb, s.guard)
	case c.ctx.Err() != nil: // says more than "connection closed"
		return fmt.Errorf("%s: %w", s.verb, context.Cause(c.ctx))
	}
	return fault(s.verb, err)
}

// forget takes back what was added and not sent.
func (c *conn) forget() { c.batch, c.steps, c.err = nil, nil, nil }

// once is a round trip of one statement.
func (c *conn) once(s step, params ...[]byte) error {
	c.add(s, params...)
	return c.send()
}
