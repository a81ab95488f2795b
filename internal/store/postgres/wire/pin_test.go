package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// TestPinnedSettingsHoldInTransactions: pinned settings hold in transactions. A session of our own needs no statement
// for them, and one behind a pooler needs one. The next client of a pooler's session must not find them.
func TestPinnedSettingsHoldInTransactions(t *testing.T) {
	setting := SQL("select current_setting('enable_seqscan') || ' ' || current_setting('lock_timeout')")
	ours := Limits{Idle: time.Second, Lock: 2 * time.Second, Statement: 3 * time.Second}
	theirs := Limits{Idle: time.Second, Lock: 7 * time.Second, Statement: 3 * time.Second}
	for _, c := range []struct {
		name          string
		pooled        bool
		begin         Limits
		statements    int
		during, after string
	}{
		{"a session of our own", false, ours, 1, "off 2s", "off 2s"},
		{"other limits there", false, theirs, 2, "off 7s", "off 2s"},
		{"a pooler's session", true, ours, 2, "off 2s", "on 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dialer(t)
			if c.pooled {
				dial := d.Server.DialFunc
				d.Server.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return &poolerConn{Conn: conn}, err
				}
			}
			conn, err := d.Dial(t.Context(), ours)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			read := func() (text string) {
				err := conn.Do(Step{Verb: "read", Stmt: setting, Each: func(r *Row) error {
					text = r.Text()
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			conn.Begin(begin, c.begin)
			if n := len(conn.steps); n != c.statements {
				t.Errorf("a transaction begins with %d statements, want %d", n, c.statements)
			}
			if got := read(); got != c.during {
				t.Errorf("in a transaction: %s, want %s", got, c.during)
			}
			conn.Add(Step{Verb: "commit", Stmt: commit})
			if got := read(); got != c.after {
				t.Errorf("after the transaction: %s, want %s", got, c.after)
			}
		})
	}
}

// poolerConn replaces the process id that a client gets, as poolers do.
type poolerConn struct {
	net.Conn
	done bool
}

func (c *poolerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	key := []byte{'K', 0, 0, 0, 12}
	if i := bytes.Index(b[:n], key); i >= 0 && !c.done {
		binary.BigEndian.PutUint32(b[i+len(key):], 4711)
		c.done = true
	}
	return n, err
}
