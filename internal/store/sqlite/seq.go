package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"zombiezen.com/go/sqlite"
)

const (
	// seqSetting holds a mark above every place in line that was ever given away.
	seqSetting = "sqlite.seq"
	// seqBlock is how far the mark is moved at a time: one write a million jobs, and a restart skips at most as many.
	seqBlock = 1_000_000
)

// seqs counts places in line. They are given from memory, below a mark in the file; after a restart counting goes on at
// the mark, so that none is given twice, also when the jobs that had them are long gone.
type seqs struct {
	next  int64
	limit int64
}

func (s *seqs) load(conn *sqlite.Conn) error {
	v := view{conn: conn}
	value, err := v.Setting(context.Background(), seqSetting)
	if err != nil {
		return err
	}
	s.next = 1
	if value != nil {
		if s.next, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return fmt.Errorf("setting %s: %w", seqSetting, err)
		}
	}
	s.limit = s.next
	return nil
}

// Seqs implements scheduler.Tx. Places that a failed transaction took are not given again.
func (t *tx) Seqs(_ context.Context, n int) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	s := &t.store.seqs
	err := t.do("reserve places in line", func() error {
		if s.next+int64(n) <= max(s.limit, t.seqLimit) {
			return nil
		}
		t.seqLimit = s.next + int64(n) + seqBlock
		return t.w.setting(seqSetting, strconv.AppendInt(nil, t.seqLimit, 10))
	})
	if err != nil {
		return 0, err
	}
	first := s.next
	s.next += int64(n)
	return first, nil
}
