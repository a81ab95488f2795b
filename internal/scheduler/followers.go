package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"lessor"
)

// followersFor is how long what a node said about its followers counts: three times as long as it takes to say it
// again.
const followersFor = 3 * sampleEvery

const followersName = "followed"

// followers says until when callers follow the records, by node. What a node says goes to the others with its
// changes; it is also kept, for those that have to rebuild their fold meanwhile.
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

// askForRecords asks the other nodes to publish their entries here, if a caller follows the records on this
// node. A failed call is made up for by the next.
func (s *Scheduler) askForRecords(ctx context.Context) {
	if !s.store.Shared() || !s.stream.active(s.now()) {
		return
	}
	_ = s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
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
}

// restoreFollowers makes up for what other nodes said and a rebuilt fold passed over: their entries are lost, who
// follows is kept.
func (l *loop) restoreFollowers(ctx context.Context, v View) error {
	if !l.store.Shared() {
		return nil
	}
	l.stream.markGap()
	f, err := loadFollowers(ctx, v)
	for name, until := range f {
		if name != l.name {
			l.followersUntil = max(l.followersUntil, until)
		}
	}
	return err
}
