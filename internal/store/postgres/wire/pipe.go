package wire

import "github.com/jackc/pgx/v5/pgconn"

// Pipeline sends what is added in parts, so that the server works on the first while the next are decided. Each part
// ends with a Sync: between two parts the server sees an idle transaction, and ends it if the next part never comes.
func (c *Conn) Pipeline() { c.pipe = c.pg.StartPipeline(c.Context) }

// Pipelined reports whether statements are sent in parts now.
func (c *Conn) Pipelined() bool { return c.pipe != nil }

func (c *Conn) addToPipe(f Form, described *pgconn.StatementDescription, params [][]byte) {
	if c.unprepared {
		c.pipe.SendQueryParams(f.Text(), params, nil, inBinary, inBinary)
	} else {
		c.pipe.SendQueryStatement(described, params, inBinary, inBinary)
	}
}

// Push sends the next part of a pipeline; without one it does nothing. The answers are read later.
func (c *Conn) Push() {
	if c.pipe == nil || len(c.steps) == 0 {
		return
	}
	c.deadline()
	_ = c.pipe.Sync() // the pipe keeps the error
	c.parts, c.steps = append(c.parts, c.steps), nil
}

// Settle ends the pipeline: it sends the last part and reads the answers to all.
func (c *Conn) Settle() error {
	if c.pipe == nil {
		return nil
	}
	return c.startPipe().Finish()
}

func (c *Conn) startPipe() Trip {
	c.Push()
	t := Trip{conn: c, pipe: c.pipe, parts: c.parts, err: c.err}
	c.pipe, c.parts = nil, nil
	c.Discard()
	return t
}

// First reads the answers to the first part of a pipeline, and reports whether nothing has failed so far.
func (t *Trip) First() bool {
	if len(t.parts) > 0 {
		t.next()
	}
	return t.err == nil
}

func (t *Trip) finishPipe() error {
	for len(t.parts) > 0 && t.err == nil {
		t.next()
	}
	if bad := t.pipe.Close(); bad != nil { // it reads what is left
		t.fail(t.conn.fault("read the answers", bad))
	}
	return t.err
}

// next reads the answers to the next part. It keeps the first fault: the server skips the rest of the part and refuses
// the parts behind it.
func (t *Trip) next() {
	steps := t.parts[0]
	t.parts = t.parts[1:]
	for n := 0; ; {
		result, bad := t.pipe.GetResults()
		at := steps[min(n, len(steps)-1)]
		if bad != nil {
			t.fail(t.conn.blame(at, bad))
		}
		switch r := result.(type) {
		case *pgconn.PipelineSync:
			return
		case *pgconn.ResultReader:
			n++
			refused, bad := at.read(r)
			if bad != nil {
				t.fail(t.conn.blame(at, bad))
			}
			if refused != nil {
				t.fail(refused)
			}
		default:
			if bad == nil || !Answered(bad) { // nothing more comes
				return
			}
		}
	}
}

func (t *Trip) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
