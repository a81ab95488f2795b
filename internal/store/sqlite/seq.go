package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"zombiezen.com/go/sqlite"
)

const (
	// seqSetting holds a limit above every place in line that was ever given.
	seqSetting = "sqlite.seq"
	// seqBlock is the step by which the limit rises: one write per million jobs, and a restart skips at most as many.
	seqBlock = 1_000_000
)

// seqs counts places in line. They are given from memory, below a limit in the file. After a restart counting continues
// at the limit, so that none is given twice, even when the jobs that had them were purged.
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

// Seqs implements scheduler.Tx. Places that a failed transaction reserved are not given again.
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
