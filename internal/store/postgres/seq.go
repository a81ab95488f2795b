package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const (
	// seqBlock is how many places in line one value of the sequence stands for; the migration has the same number.
	seqBlock = 65536
	// seqLife is how long a node gives places from one block. With a longer time, jobs of this node would pass jobs
	// that came to other nodes before them.
	seqLife = time.Second
	// seqTries is how often a node asks for consecutive blocks while other nodes take some too.
	seqTries = 10
)

var nextBlocks = wire.SQL("select nextval('place') from generate_series(1, $1::bigint)")

// seqs are places in line that this node has reserved. Those of a failed transaction are not given again.
type seqs struct {
	next, limit int64
	until       time.Time
}

// stale reports that it is time for a new block.
func (s *seqs) stale() bool { return s.limit-s.next < seqBlock/4 || time.Now().After(s.until) }

// takeSeqs adds the taking of n blocks to the next round trip. Only consecutive blocks are of use together; the last
// ones are kept.
func (t *tx) takeSeqs(n int64) {
	s := &t.store.seqs
	s.next, s.limit = 0, 0
	t.add("reserve places in line", wire.Step{Stmt: nextBlocks, Each: func(r *wire.Row) error {
		block := r.Int()
		if block != s.limit {
			s.next = block
		}
		s.limit, s.until = block+seqBlock, time.Now().Add(seqLife)
		return nil
	}}, wire.Int8(n))
}

// Seqs implements scheduler.Tx.
func (t *tx) Seqs(_ context.Context, n int) (int64, error) {
	if n <= 0 || t.err != nil {
		return 0, t.err
	}
	s := &t.store.seqs
	for try := 0; s.limit-s.next < int64(n); try++ {
		if try == seqTries {
			return 0, fmt.Errorf("reserve %d places in line: %w", n, scheduler.ErrAgain)
		}
		t.takeSeqs((int64(n) + seqBlock - 1) / seqBlock)
		if err := t.send("reserve places in line"); err != nil {
			return 0, err
		}
	}
	first := s.next
	s.next += int64(n)
	return first, nil
}
