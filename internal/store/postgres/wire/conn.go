package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is one connection and the statements of its next round trip.
type Conn struct {
	// Context ends the waiting for answers; Wait bounds one round trip.
	Context context.Context
	Wait    time.Duration
	// Cancels says that the server cancels a statement whose answer is given up, and not only a wait for a lock. A
	// commit is never cancelled: the server would commit without waiting for its standbys.
	Cancels bool
	// Epoch is for the owner of the connection: a number of its own.
	Epoch int64

	pg         *pgconn.PgConn
	server     *pgconn.Config
	fault      func(verb string, err error) error
	unprepared bool
	prepared   map[Form]*pgconn.StatementDescription
	session    Limits // that the session is pinned to; zero if the session is a pooler's
	warning    string // the last one of this transaction

	pipe  *pgconn.Pipeline // nil unless statements are sent in parts
	parts [][]Step
	batch *pgconn.Batch
	steps []Step
	err   error // why a statement could not be added
}

// Step is one statement of a round trip.
type Step struct {
	Verb string
	Stmt *Statement
	// Rows are the first parameters of a plural statement.
	Rows *Rows
	// Each is called with every row of the result; nil skips them.
	Each func(*Row) error
	// Tag receives the server's command tag.
	Tag *pgconn.CommandTag
	// Guard is what a division by zero in the statement means. A statement that does not find the rows that it must
	// divides by zero inside the server, so that the COMMIT behind it in the same round trip does not happen.
	Guard error
}

// maxPrepared bounds the statements prepared on a connection. Beyond it rows travel as if all their columns differed.
const maxPrepared = 256

// inBinary is the format of all parameters and results.
var inBinary = []int16{1}

// Add puts a statement into the next round trip.
func (c *Conn) Add(s Step, params ...[]byte) {
	if c.err != nil {
		return
	}
	f := Form{Stmt: s.Stmt}
	if s.Rows != nil {
		f.Shape = s.Rows.shape()
		if len(c.prepared) >= maxPrepared && c.prepared[f] == nil {
			f.Shape = AnyShape
		}
		params = append(s.Rows.in(f.Shape), params...)
	}
	described := c.prepared[f]
	if described == nil && !c.unprepared {
		if c.err = c.Settle(); c.err != nil {
			return
		}
		if described, c.err = c.Prepare(f); c.err != nil {
			c.err = c.fault(s.Verb+": prepare", c.err)
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
		c.batch.ExecParams(f.Text(), params, nil, inBinary, inBinary)
	} else {
		c.batch.ExecStatement(described, params, inBinary, inBinary)
	}
}

// Err is why a statement could not be added.
func (c *Conn) Err() error { return c.err }

// Warning is the last warning that the server sent in this transaction, "" if there was none.
func (c *Conn) Warning() string { return c.warning }

// Prepare prepares a statement.
func (c *Conn) Prepare(f Form) (*pgconn.StatementDescription, error) {
	c.deadline()
	described, err := c.pg.Prepare(c.Context, fmt.Sprintf("lessor_%d", len(c.prepared)), f.Text(), nil)
	if err == nil {
		c.prepared[f] = described
	}
	return described, err
}

// Prepared returns the statements that are prepared on the connection.
func (c *Conn) Prepared() map[Form]*pgconn.StatementDescription { return c.prepared }

// deadline bounds the next round trip, without the goroutine that a context with a deadline would cost.
func (c *Conn) deadline() {
	_ = c.pg.Conn().SetDeadline(time.Now().Add(c.Wait)) // a closed connection says so when it is used
}

// Trip is a round trip whose answers are still to be read.
type Trip struct {
	conn    *Conn
	steps   []Step
	results *pgconn.MultiResultReader // nil if there is nothing to read
	pipe    *pgconn.Pipeline          // with parts, instead of steps and results
	parts   [][]Step
	err     error
}

// Start sends the statements that were added.
func (c *Conn) Start() Trip {
	if c.pipe != nil {
		return c.startPipe()
	}
	t := Trip{conn: c, steps: c.steps, err: c.err}
	batch := c.batch
	c.Discard()
	if batch == nil || t.err != nil {
		return t
	}
	c.deadline()
	t.results = c.pg.ExecBatch(c.Context, batch)
	return t
}

// Finish reads the answers and returns the first fault; the server skips the statements behind one that failed. After
// the first error of an Each the rest is read and ignored, and Finish returns that error as a RowError.
func (t Trip) Finish() error {
	if t.pipe != nil {
		return t.finishPipe()
	}
	if t.results == nil {
		return t.err
	}
	var refused error
	n := 0
	for ; t.results.NextResult(); n++ {
		rowErr, bad := t.steps[n].read(t.results.ResultReader())
		if bad != nil {
			break // Close returns it too
		}
		if refused == nil {
			refused = rowErr
		}
	}
	if bad := t.results.Close(); bad != nil {
		return t.conn.blame(t.steps[min(n, len(t.steps)-1)], bad)
	}
	return refused
}

// Send makes the round trip.
func (c *Conn) Send() error { return c.Start().Finish() }

// SendFirst makes a round trip of the statements that add adds, before those that were added already.
func (c *Conn) SendFirst(add func()) error {
	if c.pipe != nil {
		add()
		// A statement that had to be prepared has ended the pipeline: the rest takes a round trip of its own.
		return c.Send()
	}
	batch, steps, err := c.batch, c.steps, c.err
	c.Discard()
	add()
	bad := c.Send()
	c.batch, c.steps, c.err = batch, steps, err
	return bad
}

// Do is a round trip of one statement.
func (c *Conn) Do(s Step, params ...[]byte) error {
	c.Add(s, params...)
	return c.Send()
}

// Discard drops the statements that were added and not sent.
func (c *Conn) Discard() { c.batch, c.steps, c.err = nil, nil, nil }

// Exec runs SQL text outside of what was added.
func (c *Conn) Exec(ctx context.Context, text string) ([]*pgconn.Result, error) {
	c.deadline()
	return c.pg.Exec(ctx, text).ReadAll()
}

// RowError is the error of an Each. It says nothing against the connection.
type RowError struct{ Err error }

func (e RowError) Error() string { return e.Err.Error() }

// read hands the rows of a result to the step. It returns the error of Each as a RowError, and what went wrong with
// the statement.
func (s *Step) read(r *pgconn.ResultReader) (refused, bad error) {
	var one Row
	for r.NextRow() {
		if s.Each != nil && refused == nil {
			one = Row{values: r.Values()}
			if err := s.Each(&one); err != nil {
				refused = RowError{err}
			}
		}
	}
	tag, bad := r.Close()
	if bad == nil && s.Tag != nil {
		*s.Tag = tag
	}
	return refused, bad
}

// blame says which step failed, and what that means to the caller.
func (c *Conn) blame(s Step, err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && !c.Cancels {
		c.endWait()
	}
	pg, isServer := errors.AsType[*pgconn.PgError](err)
	switch {
	case isServer && s.Guard != nil && pg.Code == divisionByZero:
		return fmt.Errorf("%s: %w", s.Verb, s.Guard)
	case c.Context.Err() != nil: // says more than "connection closed"
		return fmt.Errorf("%s: %w", s.Verb, context.Cause(c.Context))
	}
	return c.fault(s.Verb, err)
}
