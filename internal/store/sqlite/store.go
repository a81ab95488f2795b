package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store"
)

// Versions before 3.51.3 can corrupt a WAL under two checkpointers. The library is compiled in, so the build
// asserts it.
const _ = uint(sqlite.VersionNumber - 3_051_003)

// Config says where the database is and how it is opened.
type Config struct {
	// Path is the database file. It is made if it does not exist; its folder is not.
	Path string
	// Synchronous is like SQLite's setting of that name. "" is FULL, which the promises need: each commit is synced
	// before it is acknowledged. NORMAL and OFF lose acknowledged changes when power fails: for tests.
	Synchronous string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Mono is a monotonic clock beside Now, from any fixed moment on. nil takes the monotonic reading that Now's times
	// carry; without one a step of the clock shows only as a gap.
	Mono func() time.Duration
	// Readers is how many views can run at a time; 0 is 4.
	Readers int
}

// defaultReaders is enough to keep both cores of a small machine busy while one reader waits for the disk.
const defaultReaders = 4

// Store is a scheduler.Store in one SQLite file.
type Store struct {
	path    string
	clock   *clock
	lock    *fileLock
	seal    *rules.Seal
	readers *sqlitex.Pool

	turn    store.Turn // a goroutine that has it may write
	syncing syncing
	closed  chan struct{}
	close   func() error

	// Only the goroutine that has the turn uses the fields below.
	writer    *writer
	leases    *leaseCache
	queueRows *queueRows
	specs     *store.Specs
	lanes     *laneCache
	seqs      seqs
	// ill says that the last write failed for a reason that would fail others too. Until one succeeds no heartbeat
	// could be accepted, and the time is not counted as served.
	ill bool
	// broken is the I/O error after which the store writes nothing.
	broken error
	// lostFiles says that the files were lost, and that broken says which.
	lostFiles bool
	files     files
	mark      *mark
	// generation and commits are those of the database, see marked; at is the end of the last commit in the log.
	generation uint32
	commits    int64
	at         position
}

var _ scheduler.Store = (*Store)(nil)

// Open opens the database, brings its schema up to date, and owns the file until Close. It refuses a file that another
// process owns, that cannot be written, that a newer program wrote, or that lies where SQLite cannot keep a WAL.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	path, err := prepareFile(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s := &Store{
		path: path, clock: newClock(cfg),
		closed: make(chan struct{}),
		leases: newLeaseCache(), queueRows: newQueueRows(), specs: store.NewSpecs(), lanes: newLaneCache(),
	}
	s.turn = store.NewTurn("wait for the writer", s.closed)
	s.syncing.turn = store.NewTurn("wait for the disk", nil)
	s.syncing.turn.Leave()
	s.close = sync.OnceValue(s.shut)
	defer func() {
		if err != nil {
			err = fmt.Errorf("open database %s: %w", path, err)
			s.turn.Leave()
			_ = s.Close() // the first error says why
		}
	}()
	if s.lock, err = lockDatabase(path); err != nil {
		return nil, err
	}
	found, err := checkMark(path)
	if err != nil {
		return nil, err
	}
	if err := acceptCopy(path); err != nil {
		return nil, err
	}
	if err := s.connect(ctx, cfg, found); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.begin(found); err != nil {
		return nil, err
	}
	reading := s.clock.read()
	s.clock.keep(reading, s.clock.at(reading))
	s.turn.Leave()
	return s, nil
}

// prepareFile makes the file if there is none, readable by its owner only (payloads and token hashes are in it), and
// returns its true path, so that two names of one file share one lock.
func prepareFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func (s *Store) connect(ctx context.Context, cfg Config, found marked) (err error) {
	synchronous, err := parseSynchronous(cfg.Synchronous)
	if err != nil {
		return err
	}
	if err := removeOldCopies(s.path); err != nil {
		return err
	}
	held, err := s.holdLog(found, synchronous)
	if err != nil {
		return err
	}
	if held != nil {
		defer func() { err = errors.Join(err, fault("release the log", held.Close())) }()
	}
	if s.seal, err = migrate(ctx, s.path, synchronous); err != nil {
		return err
	}
	if synchronous == "FULL" {
		s.syncing.data = syncData
	}
	if s.writer, err = openWriter(s.path, synchronous); err != nil {
		return err
	}
	s.readers, err = openReaders(s.path, cfg.Readers)
	return err
}

// load fills the caches from the tables.
func (s *Store) load() error {
	v := view{conn: s.writer.conn}
	if err := v.eachLeaseRow(s.leases.load); err != nil {
		return fault("load leases", err)
	}
	if err := s.queueRows.load(s.writer.conn); err != nil {
		return fault("load the queue", err)
	}
	return fault("load places in line", s.seqs.load(s.writer.conn))
}

// Seal implements scheduler.Store.
func (s *Store) Seal() *rules.Seal { return s.seal }

// Close waits for the update that is under way, ends the views, and gives the file up. It may be called more than
// once.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	close(s.closed)
	s.turn.End()
	var firstErr error
	keep := func(err error) {
		if firstErr == nil && err != nil {
			firstErr = fault("close database", err)
		}
	}
	// Readers first: the last connection to close removes the WAL, and only the writer can.
	if s.readers != nil {
		keep(s.readers.Close())
	}
	if s.files.log != nil && s.broken == nil {
		if err := s.acknowledge(context.Background(), s.commits); err != nil { // the last commits may be waited for
			keep(s.lost(err))
		}
	}
	_ = s.syncing.turn.Enter(context.Background()) // it fails only with its context
	defer s.syncing.turn.Leave()
	if s.files.log != nil && s.broken == nil {
		keep(s.closeLog())
	}
	if s.writer != nil && !s.lostFiles { // SQLite would remove the file that has the log's name now
		keep(s.writer.conn.Close())
	}
	keep(s.files.close())
	if s.mark != nil {
		keep(s.closeMark())
	}
	if s.lock != nil {
		keep(s.lock.release())
	}
	return firstErr
}
