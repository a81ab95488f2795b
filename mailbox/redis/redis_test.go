package redis_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"lessor/mailbox/redis"
	"lessor/mailbox/redis/internal/redistest"
	"lessor/worker"
	"lessor/worker/mailboxtest"
)

var pool redistest.Pool

func TestMain(m *testing.M) {
	code := pool.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// open returns a mailbox with a name of its own.
func open(t testing.TB, length int) *redis.Mailbox {
	t.Helper()
	client := pool.Client(t)
	name := "test-" + rand.Text()
	b, err := redis.New(redis.Config{Client: client, Name: name, MaxLength: length})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keys, err := client.Keys(t.Context(), "lessor:{"+name+"}:*").Result()
		if err == nil && len(keys) > 0 {
			client.Del(t.Context(), keys...)
		}
	})
	return b
}

func TestMailbox(t *testing.T) {
	mailboxtest.Run(t, mailboxtest.Config{
		Open:      func(t testing.TB) worker.Mailbox { return open(t, 0) },
		OpenSmall: func(t testing.TB, length int) worker.Mailbox { return open(t, length) },
		Unit:      500 * time.Millisecond,
	})
}

func TestBadConfigsAreRefused(t *testing.T) {
	client := pool.Client(t)
	for _, cfg := range []redis.Config{
		{Name: "jobs"},
		{Client: client},
		{Client: client, Name: "a}b"},
		{Client: client, Name: strings.Repeat("x", 201)},
	} {
		if _, err := redis.New(cfg); err == nil {
			t.Errorf("name %q with client %v: taken", cfg.Name, cfg.Client)
		}
	}
}

func TestServerThatIsGoneIsAFault(t *testing.T) {
	gone := goredis.NewClient(&goredis.Options{Network: "unix", Addr: t.TempDir() + "/none", MaxRetries: -1})
	defer gone.Close()
	b, err := redis.New(redis.Config{Client: gone, Name: "jobs"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), []byte("a"), nil); err == nil || !strings.HasPrefix(err.Error(), "redis: ") {
		t.Errorf("sent to a server that is gone: %v", err)
	}
	if got, err := b.Receive(t.Context(), 1, 0, 0); err == nil {
		t.Errorf("received %v from a server that is gone", got)
	}
}

func TestTwoEndsShareOneMailbox(t *testing.T) {
	cfg := redis.Config{Client: pool.Client(t), Name: "test-" + rand.Text()}
	here, err := redis.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	there, err := redis.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	id, err := here.Send(t.Context(), []byte("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := there.Receive(t.Context(), 1, time.Minute, 0)
	if err != nil || len(got) != 1 || got[0].ID() != id {
		t.Fatalf("received %v at the other end, err %v", got, err)
	}
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	if err := got[0].Acknowledge(t.Context()); err != nil {
		t.Errorf("acknowledge at the other end: %v", err)
	}
}
