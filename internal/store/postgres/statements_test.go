package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"lessor/internal/store/storetest"
)

// TestStatementsPerCall: the number of statements does not grow with a batch. Begin and commit count.
func TestStatementsPerCall(t *testing.T) {
	url := pool.Database(t)
	var executed atomic.Int64
	s := openAt(t, patient(countStatements(t, url, &executed)))
	storetest.Statements(t, s, func() int { return int(executed.Load()) }, map[string]int{
		"submit":          6,
		"submit 100":      7,
		"request":         7,
		"first heartbeat": 5,
		"heartbeat":       5,
		"100 heartbeats":  6,
		"complete":        6,
		"turn":            9,
		"tick by hand":    17,
	})
}

// countStatements returns the URL of a proxy in front of the server of url. The proxy counts the messages that execute
// a statement.
func countStatements(t *testing.T, url string, executed *atomic.Int64) string {
	t.Helper()
	to, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(to.Host, to.Port)
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := (&net.Dialer{}).DialContext(t.Context(), network, address)
				if err != nil {
					return
				}
				defer far.Close()
				go func() { _, _ = io.Copy(near, far) }()
				_ = forward(far, near, executed)
			}()
		}
	}()
	return "postgres://" + to.User + ":" + to.Password + "@" + ln.Addr().String() +
		"/" + to.Database + "?sslmode=disable"
}

// forward copies the messages of a client. All but the first have a type; Execute and Query run a statement.
func forward(to io.Writer, from io.Reader, executed *atomic.Int64) error {
	for head := make([]byte, 4); ; head = make([]byte, 5) {
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		if len(head) == 5 && (head[0] == 'E' || head[0] == 'Q') {
			executed.Add(1)
		}
		size := binary.BigEndian.Uint32(head[len(head)-4:])
		if _, err := to.Write(head); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, int64(size)-4); err != nil {
			return err
		}
	}
}
