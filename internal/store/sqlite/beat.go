package sqlite

import (
	"cmp"
	"context"
	"slices"

	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	changedColumns = "expires_at, first_beat_at, beat_at, ttl_ms, cancel_at, watch_until, reattached"
	beatColumns    = "n, " + changedColumns
)

func bindBeat(a *args, h *kept) {
	a.int(h.n)
	a.instant(h.ExpiresAt)
	a.instant(h.FirstBeatAt)
	a.instant(h.BeatAt)
	a.millis(h.TTL)
	a.instant(h.CancelAt)
	a.instant(h.WatchUntil)
	a.flag(h.Reattached)
}

// readBeat adds to a lease what was changed since it was granted.
func readBeat(r *row, h *kept) {
	if h.beaten = r.int() != 0; !h.beaten {
		h.ExpiresAt, h.BeatAt = h.IssuedAt.Add(h.TTL), h.IssuedAt
		return
	}
	h.ExpiresAt = r.instant()
	h.FirstBeatAt = r.instant()
	h.BeatAt = r.instant()
	h.TTL = r.millis()
	h.CancelAt = r.instant()
	h.WatchUntil = r.instant()
	h.Reattached = r.flag()
}

// asGranted reports whether a lease is as every grant makes it, so that it needs no row in beat.
func asGranted(h *rules.Held) bool {
	return h.ExpiresAt == h.IssuedAt.Add(h.TTL) && h.BeatAt == h.IssuedAt &&
		h.FirstBeatAt == 0 && h.CancelAt == 0 && h.WatchUntil == 0 && !h.Reattached
}

// SaveLeases implements scheduler.Tx. A lease that is not live is scheduler.ErrMoved.
func (t *tx) SaveLeases(_ context.Context, held []*rules.Held) error {
	return t.do("save leases", func() error {
		t.beaten = t.beaten[:0]
		for _, h := range held {
			now := t.store.leases.change(h)
			if now == nil {
				return scheduler.ErrMoved
			}
			t.beaten = append(t.beaten, now)
		}
		// In the order of their keys the next row is mostly beside the last one.
		slices.SortFunc(t.beaten, func(a, b *kept) int { return cmp.Compare(a.n, b.n) })
		return t.saveBeats()
	})
}

func (t *tx) saveBeats() error {
	return t.w.beat.insert(len(t.beaten), func(i int, a *args) { bindBeat(a, t.beaten[i]) })
}
