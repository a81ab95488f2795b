package postgres

import "github.com/jackc/pgx/v5/pgconn"

// stream has what is added go out in parts, so that the server works on the first while the next are decided. Each part ends with a Sync: between two of them the
// transaction is idle to the server, which ends it if the next never comes.
func (c *conn) stream() { c.pipe = c.pg.StartPipeline(c.ctx) }

func (c *conn) addToPipe(f form, described *pgconn.StatementDescription, params [][]byte) {
	if c.unprepared {
		c.pipe.SendQueryParams(f.text(), params, nil, inBinary, inBinary)
	} else {
		c.pipe.SendQueryStatement(described, params, inBinary, inBinary)
	}
}

// push sends the next part, if that is how statements are sent. What it answers is read later.
func (c *conn) push() {
	if c.pipe == nil || len(c.steps) == 0 {
		return
	}
	c.deadline()
	_ = c.pipe.Sync() // the pipe keeps it
	c.parts, c.steps = append(c.parts, c.steps), nil
}

// settle sends and reads what is left of all parts. From then on there are none.
func (c *conn) settle() error {
	if c.pipe == nil {
		return nil
	}
	return c.startPipe().finish()
}

func (c *conn) startPipe() trip {
	c.push()
	t := trip{conn: c, pipe: c.pipe, parts: c.parts, err: c.err}
	c.pipe, c.parts = nil, nil
	c.forget()
	return t
}

func (t *trip) finishPipe() error {
	for len(t.parts) > 0 && t.err == nil {
		t.next()
	}
	if bad := t.pipe.Close(); t.err == nil && bad != nil { // it reads what is left
		t.err = fault("read the answers", bad)
	}
	return t.err
}

// next reads the answers to the next part. The first fault is kept: the server passes over the rest of the part, and refuses those behind it.
func (t *trip) next() {
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
			tag, refused, bad := read(r, at.each)
			switch {
			case bad != nil:
				t.fail(t.conn.blame(at, bad))
			case refused != nil:
				t.fail(refusal{refused})
			}
			if at.tag != nil {
				*at.tag = tag
			}
		default:
			if bad == nil || !answered(bad) { // nothing more comes
				return
			}
		}
	}
}

func (t *trip) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
