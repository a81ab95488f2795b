package redis_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"lessor/mailbox/redis"
	"lessor/worker"
)

// lossy is a connection that breaks when the answer of a script arrives, if lost is set. It calls lost first.
type lossy struct {
	net.Conn
	script bool // the last write called a script
	broken bool
	lost   *atomic.Pointer[func()]
}

func (c *lossy) Write(p []byte) (int, error) {
	c.script = bytes.Contains(p, []byte("eval"))
	return c.Conn.Write(p)
}

func (c *lossy) Read(p []byte) (int, error) {
	if c.broken {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	if err != nil || !c.script || p[0] == '-' { // -NOSCRIPT: it did not run
		return n, err
	}
	if lost := c.lost.Swap(nil); lost != nil {
		(*lost)()
		c.broken = true
		return 0, io.EOF
	}
	return n, nil
}

// ends returns two ends of one mailbox. After lose(then), the next script of here runs, its answer is lost, then runs,
// and the client of here repeats the script.
func ends(t *testing.T, length int) (here, there *redis.Mailbox, lose func(then func())) {
	t.Helper()
	options, err := pool.Options()
	if err != nil {
		t.Fatal(err)
	}
	lost := new(atomic.Pointer[func()])
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &lossy{Conn: conn, lost: lost}, err
	}
	client := goredis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	cfg := redis.Config{Client: client, Name: "test-" + rand.Text(), MaxLength: length}
	if here, err = redis.New(cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Client = pool.Client(t)
	if there, err = redis.New(cfg); err != nil {
		t.Fatal(err)
	}
	return here, there, func(then func()) {
		lost.Store(&then)
		t.Cleanup(func() {
			if lost.Load() != nil {
				t.Error("no answer was lost")
			}
		})
	}
}

func send(t *testing.T, b *redis.Mailbox) string {
	t.Helper()
	id, err := b.Send(t.Context(), []byte("a"), nil)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	return id
}

func receive(t *testing.T, b *redis.Mailbox, n int, visibility time.Duration) []worker.Message {
	t.Helper()
	got, err := b.Receive(t.Context(), n, visibility, 0)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return got
}

func TestRepeatedSendIsOneMessage(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		here, there, lose := ends(t, 0)
		var held []worker.Message
		lose(func() { held = receive(t, there, 1, time.Minute) })
		id := send(t, here)
		if len(held) != 1 || held[0].ID() != id {
			t.Fatalf("received %v before the repetition, want %s", held, id)
		}
		if got := receive(t, there, 1, time.Minute); len(got) != 0 {
			t.Error("a second receiver got a message that the first one holds")
		}
	})
	t.Run("acknowledged", func(t *testing.T) {
		here, there, lose := ends(t, 0)
		lose(func() {
			for _, m := range receive(t, there, 1, time.Minute) {
				if err := m.Acknowledge(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		send(t, here)
		if got := receive(t, there, 1, time.Minute); len(got) != 0 {
			t.Error("an acknowledged message came back")
		}
	})
	t.Run("full", func(t *testing.T) {
		here, there, lose := ends(t, 1)
		lose(func() {})
		id := send(t, here)
		if got := receive(t, there, 2, time.Minute); len(got) != 1 || got[0].ID() != id {
			t.Errorf("received %v, want %s", got, id)
		}
	})
}

func TestRepeatedReceiveReturnsTheSameDeliveries(t *testing.T) {
	here, there, lose := ends(t, 0)
	first, second := send(t, there), send(t, there)
	lose(func() {})
	got := receive(t, here, 1, time.Minute)
	if len(got) != 1 || got[0].ID() != first || got[0].Deliveries() != 1 {
		t.Fatalf("received %v, want the first delivery of %s", got, first)
	}
	if others := receive(t, there, 2, time.Minute); len(others) != 1 || others[0].ID() != second {
		t.Errorf("another receiver got %v, want %s", others, second)
	}
	if err := got[0].Acknowledge(t.Context()); err != nil {
		t.Errorf("acknowledge: %v", err)
	}
}

// TestRepeatedReceiveReturnsNoDeliveryThatIsOver: the visibility was 0, and another receiver holds the message.
func TestRepeatedReceiveReturnsNoDeliveryThatIsOver(t *testing.T) {
	here, there, lose := ends(t, 0)
	send(t, there)
	var held []worker.Message
	lose(func() { held = receive(t, there, 1, time.Minute) })
	got := receive(t, here, 1, 0)
	if len(got) != 0 || len(held) != 1 {
		t.Errorf("received %v, while another receiver holds %v", got, held)
	}
}
