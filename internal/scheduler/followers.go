package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"lessor"
)

// followersFor is how long a node's report of its followers counts: three times the interval between two reports.
const followersFor = 3 * sampleEvery

// askedFor is how long this node counts on the reports that it made itself: the others may read and write some seconds
// later.
const askedFor = followersFor - sampleEvery

const followersName = "followed"

// followers says, for each node, until when callers follow the records there. A node publishes this with its changes;
// it is also stored for nodes that rebuild their fold in the meantime.
type followers map[string]lessor.Instant

func loadFollowers(ctx context.Context, v View) (followers, error) {
	raw, err := v.Setting(ctx, followersName)
	if err != nil || raw == nil {
		return followers{}, err
	}
	var f followers
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("read setting %s: %w", followersName, err)
	}
	return f, nil
}

// askForRecords asks the other nodes to publish their entries here, if a caller follows the records on this node. If a
// call fails, the next one replaces it and leaves a gap.
func (s *Scheduler) askForRecords(ctx context.Context) {
	if !s.store.Shared() || !s.stream.active(s.now()) {
		return
	}
	began := s.now()
	err := s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		f, err := loadFollowers(ctx, p.tx)
		if err != nil {
			return err
		}
		maps.DeleteFunc(f, func(_ string, until lessor.Instant) bool { return until <= p.now })
		f[s.name] = p.now.Add(followersFor)
		raw, err := json.Marshal(f)
		if err != nil {
			return err
		}
		p.l.fold.AskForEvents()
		return p.tx.SaveSetting(ctx, followersName, raw)
	})
	s.stream.noteAsked(began, s.now(), err)
}

// followedElsewhere reports whether callers follow the records on another node, as far as this one has read: until it
// reads again, a report does not end, however long this node, or the store's clock, stood still or leapt.
func (l *loop) followedElsewhere() bool { return l.followedAt.Before(l.followersUntil) }

// restoreFollowers reads the stored reports of other nodes after a rebuild, which skips the changes that carried them.
// Entries that those changes carried are lost. A report counts again in full, because its end is a time on the store's
// clock, which may have been set.
func (l *loop) restoreFollowers(ctx context.Context, v View) error {
	if !l.store.Shared() {
		return nil
	}
	l.stream.markGap()
	f, err := loadFollowers(ctx, v)
	for name := range f {
		if name != l.name {
			l.followersUntil = l.now().Add(followersFor)
		}
	}
	return err
}
