package memory

import (
	"context"
	"time"
)

// A node takes places in line from blocks, as in package postgres. Those of a failed transaction are not given again.
const (
	seqBlock = 65536
	seqLife  = time.Second
)

type seqs struct {
	next, limit int64
	until       time.Duration // on the clock of the node
}

// Seqs implements scheduler.Tx.
func (t *tx) Seqs(_ context.Context, n int) (first int64, err error) {
	err = t.do("reserve places in line", func() error {
		s := &t.store.seqs
		if now := t.db.Mono(t.store.node); s.limit-s.next < int64(n) || now > s.until {
			blocks := (int64(n) + seqBlock - 1) / seqBlock * seqBlock
			s.next, s.limit, s.until = t.db.places+seqBlock, t.db.places+seqBlock+blocks, now+seqLife
			t.db.places += blocks
		}
		first = s.next
		s.next += int64(n)
		return nil
	})
	return first, err
}
