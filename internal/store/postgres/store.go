package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store"
	"lessor/internal/store/postgres/wire"
)

// Config says where the database is and how it is used. Zero values mean the defaults.
type Config struct {
	// URL is a connection string, postgres://user@host/database or key=value, as libpq reads it. Of several hosts the
	// first that accepts writes is used.
	URL string
	// StatementTimeout bounds one statement of a write transaction; 0 is 5 s.
	StatementTimeout time.Duration
	// LockTimeout bounds the waiting for one lock of another node; 0 is 2 s. It must be longer than the next two, after
	// which the server frees the locks of a node that stopped.
	LockTimeout time.Duration
	// IdleTimeout is how long a write transaction may do nothing before the server ends it; 0 is 1 s. GateTimeout is
	// the same for a transaction that holds the gate; 0 is 250 ms.
	IdleTimeout time.Duration
	GateTimeout time.Duration
	// VacuumAfter is how many leases end on this node before it vacuums the hot tables; 0 is 200,000, about 100 MB.
	VacuumAfter int
	// Unprepared sends the text of every statement, for poolers that do not support prepared statements (pgbouncer
	// before 1.21).
	Unprepared bool
}

func (c Config) withDefaults() Config {
	c.StatementTimeout = cmp.Or(c.StatementTimeout, 5*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 2*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Second)
	c.GateTimeout = cmp.Or(c.GateTimeout, 250*time.Millisecond)
	c.VacuumAfter = cmp.Or(c.VacuumAfter, 200_000)
	return c
}

// maxReaders is how many views can run at a time, each on a connection of its own. A store uses three more: two that
// write and one that serves; and at times a fourth, to vacuum.
const maxReaders = 4

// patience is how much longer than the server's own statement time-out a node waits for an answer: beyond it the server
// or the way to it is gone.
const patience = 5 * time.Second

// Store is a scheduler.Store in a PostgreSQL database that other nodes may share.
type Store struct {
	cfg        Config
	dialer     *wire.Dialer
	clockSteps clockSteps

	seal    *rules.Seal
	closed  chan struct{}
	close   func() error
	readers chan *wire.Conn // nil = not connected yet

	// serveTurn is of the call that serves; the fields up to proved belong to that call.
	serveTurn store.Turn
	server    *wire.Conn
	notedAt   time.Duration // when it last succeeded, on the clock of steps; 0 = never
	tidied    tidied
	proofKey  int64        // the advisory lock of a proof
	proved    atomic.Int64 // when a commit of this node last succeeded, on the clock of steps; 0 = never

	// vacuumTurn holds one token while hot tables are vacuumed.
	vacuumTurn chan struct{}

	turn store.Turn // of a writer
	// All below, up to scratch, belongs to the writer that has the turn. writers are the connections that no
	// transaction uses now; flights are the commits on their way, oldest first.
	writers  []*wire.Conn
	flights  []*flight
	orders   int32 // the number of the last order lock
	specs    *store.Specs
	leases   map[lessor.LeaseID]knownLease
	requests requests
	usual    int // how many leases the last transaction changed
	spent    int // how many leases have ended since the last vacuum
	seqs     seqs
	reckoned reckoning
	// scratch is memory for parameters.
	scratch wire.Rows

	stream   stream
	owners   owners
	origin   origin
	soleNode atomic.Bool // no other node works here, as far as the last Serve saw
	// epoch changes when this node learns that another node has written. served is the answer of the last Serve, nil
	// after a change of it.
	epoch  atomic.Int64
	served atomic.Pointer[rules.Serving]
}

// Open connects to the database and brings its schema up to date. It refuses the schema of a newer program, and a
// server that accepts no writes.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	cfg = cfg.withDefaults()
	defer func() {
		if errors.Is(err, scheduler.ErrUnreachable) && !errors.Is(err, errPooler) {
			err = unreachable{err}
		}
		if err != nil {
			err = fmt.Errorf("open database: %w", err)
		}
	}()
	server, err := wire.ParseServer(cfg.URL)
	if err != nil {
		return nil, err
	}
	d := &wire.Dialer{Server: server, Wait: cfg.StatementTimeout + patience, Unprepared: cfg.Unprepared, Fault: fault}
	seal, err := migrate(ctx, cfg.URL, server)
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, dialer: d, seal: seal, clockSteps: clockSteps{start: time.Now()}, proofKey: rand.Int64(),
		closed: make(chan struct{}), readers: make(chan *wire.Conn, maxReaders),
		vacuumTurn: make(chan struct{}, 1),
		specs:      store.NewSpecs(), leases: map[lessor.LeaseID]knownLease{}, requests: newRequests(),
	}
	s.close = sync.OnceValue(s.shut)
	for range maxReaders {
		s.readers <- nil
	}
	s.turn, s.serveTurn = store.NewTurn("wait for the writer", s.closed), store.NewTurn("wait to serve", s.closed)
	s.turn.Leave()
	s.serveTurn.Leave()
	c, _, err := s.connect(ctx)
	if err != nil {
		_ = s.Close() // the first error says why
		return nil, err
	}
	s.keep(c)
	reader, _, err := s.take(ctx) // a second connection shows whether a pooler keeps prepared statements apart
	if err != nil {
		_ = s.Close() // the first error says why
		return nil, err
	}
	s.giveBack(reader, nil)
	return s, nil
}

// Seal implements scheduler.Store.
func (s *Store) Seal() *rules.Seal { return s.seal }

// Shared implements scheduler.Store.
func (*Store) Shared() bool { return true }

// Close waits for running transactions and ends the connections. It may be called more than once.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.closed)
	s.turn.End()
	s.serveTurn.End()
	_ = s.awaitAll() // the sender gets the error
	s.vacuumTurn <- struct{}{}
	err := s.drain()
	if s.server != nil {
		s.keep(s.server)
	}
	for _, c := range s.writers {
		if bad := c.Close(); err == nil {
			err = bad
		}
	}
	if err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
