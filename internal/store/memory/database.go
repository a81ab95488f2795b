package memory

import (
	"sync"
	"sync/atomic"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Options say how a database is driven. Zero values mean the clock of the machine and waiting for real.
type Options struct {
	// Clock is the clock of the database.
	Clock func() lessor.Instant
	// Mono is the monotonic clock of a node, and of the database itself for "". It is the Clock if there is none.
	Mono func(node string) time.Duration
	// Stepper decides which node runs and what fails; nil = nothing fails.
	Stepper Stepper
	// Committed is called with the tables after each commit, before another node runs. It may only read.
	Committed func(v scheduler.View)
	// Key seals the numbers of the database in what callers see.
	Key [32]byte
}

// Stepper drives the nodes. Reach and Wait may switch to another coroutine, and may panic: that is a crash of the node,
// and its transaction is rolled back. Fate only decides.
type Stepper interface {
	// Reach is called before each statement and each commit, before Serve, and before the answer to a commit.
	Reach(node, point string)
	// Wait is called when a node must wait for what. It returns when the node should check again.
	Wait(node, what string)
	// Fate decides what becomes of a commit, or of the note of Serve.
	Fate(node string) Fate
}

// Fate is what becomes of a commit.
type Fate uint8

// The fates of a commit. Of an unanswered commit the answer is lost, and the node finds out what became of it; of an
// unknown one it cannot.
const (
	Durable Fate = iota
	Refused
	Full // there is no space
	DurableUnanswered
	LostUnanswered
	DurableUnknown
	LostUnknown
)

// Database is one database. Nodes open it by Open.
type Database struct {
	*common
	timeline  int // each promotion begins another one
	version   int64
	state     tables
	streams   table[stream] // by number
	serving   rules.Serving
	latest    lessor.Instant // that its clock ever said
	places    int64          // the last block of places in line that was given
	laneIDs   int64          // the last number of a lane that was given
	notes     int64          // the last number of a note
	locks     map[lock]*tx
	deadlocks int
}

// common is what a database and its copies share.
type common struct {
	Options
	seal *rules.Seal
	mu   sync.Mutex
	cond *sync.Cond
	// ids makes the numbers of streams, which no two databases may share.
	ids atomic.Int64
}

// tables are the rows that transactions change.
type tables struct {
	jobs       table[*job]                // by id
	queue      table[*job]                // by seq
	delayed    table[*job]                // by until and seq
	leases     table[*job]                // by seq
	done       table[*job]                // by the end and seq
	held       table[int64]               // the seqs of leases, by lock key and tenant
	requested  table[int64]               // the same, by request, space, grant and seq
	workspaces table[int64]               // the same, by workspace and seq
	runs       table[*job]                // jobs of definitions that have not ended, by definition and id
	attempts   table[*rules.Attempt]      // by job and fence
	ends       table[*rules.Attempt]      // by lease
	notes      table[rules.Note]          // by job and number
	journal    table[rules.Entry]         // by job and number
	output     table[rules.OutputPiece]   // by stream, job, fence and start
	messages   table[letter]              // by job and number
	keys       table[scheduler.KeyHolder] // by key and tenant
	lanes      table[lane]                // by number
	laneIDs    table[rules.LaneID]        // by what the lane is
	ticks      table[rules.TickRow]       // by definition, tenant and instant
	defined    table[*rules.Definition]   // by id
	circuits   table[*rules.Circuit]      // by definition
	alerts     table[lessor.Alert]        // by id
	open       table[lessor.AlertID]      // by kind and subject, and tenant
	audit      table[lessor.Audited]      // by id
	settings   table[[]byte]              // by name
	policies   table[rules.Policy]        // by tenant and class
	handlers   table[lessor.Handler]      // by id
	tokens     table[scheduler.Token]     // by id
	changes    table[change]              // by stream and number
	stripped   key                        // the last job of done that was stripped
}

// New returns an empty database.
func New(o Options) *Database {
	start := time.Now()
	switch {
	case o.Mono != nil:
	case o.Clock != nil:
		o.Mono = func(string) time.Duration { return time.Duration(o.Clock()) * time.Millisecond }
	default:
		o.Mono = func(string) time.Duration { return time.Since(start) }
	}
	if o.Clock == nil {
		o.Clock = func() lessor.Instant { return lessor.Instant(time.Now().UnixMilli()) }
	}
	d := &Database{common: &common{Options: o, seal: rules.NewSeal(o.Key)}, locks: map[lock]*tx{}}
	d.cond = sync.NewCond(&d.mu)
	return d
}

// Copy returns a database with everything that is committed now: a backup, or a standby that has received so much.
func (d *Database) Copy() *Database {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := *d
	c.locks, c.deadlocks = map[lock]*tx{}, 0
	return &c
}

// Promote begins another timeline, as the promotion of a standby and a recovery to a point in time do.
func (d *Database) Promote() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timeline++
}

// Deadlocks counts the transactions that were refused because they waited in a circle of which none was guarded. There
// should be none.
func (d *Database) Deadlocks() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deadlocks
}

// reach passes a point at which others may run.
func (c *common) reach(node, point string) {
	if c.Stepper != nil {
		c.Stepper.Reach(node, point)
	}
}

// pollEvery is the longest time that a goroutine waits before it checks whether it may continue: a time limit ends
// without a signal.
const pollEvery = 10 * time.Millisecond

// await waits until something may have changed. The caller holds mu.
func (c *common) await(node, what string) {
	if c.Stepper == nil {
		timer := time.AfterFunc(pollEvery, c.cond.Broadcast)
		c.cond.Wait()
		timer.Stop()
		return
	}
	c.mu.Unlock()
	defer c.mu.Lock() // also when the node crashes
	c.Stepper.Wait(node, what)
}
