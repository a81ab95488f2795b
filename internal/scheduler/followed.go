package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"lessor"
)

// followersFor is how long what a node said about its followers counts: three times as long as it takes to say it again.
const followersFor = 3 * sampleEvery

const followedName = "followed"

// followed says until when somebody follows the records, by node. What a node says goes to the others with its changes; it is also
// kept, for those that have to rebuild their fold meanwhile.
type followed map[string]lessor.Instant

func loadFollowed(ctx context.Context, v View) (followed, error) {
	raw, err := v.Setting(ctx, followedName)
	if err != nil || raw == nil {
		return followed{}, err
	}
	var f followed
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("read setting %s: %w", followedName, err)
	}
	return f, nil
}

// askForRecords asks the other nodes to tell their entries too, if anybody follows here. If it fails, the next does it.
func (s *Scheduler) askForRecords(ctx context.Context) {
	if !s.store.Shared() || !s.stream.active() {
		return
	}
	_ = s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		f, err := loadFollowed(ctx, p.tx)
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
		return p.tx.SaveSetting(ctx, followedName, raw)
	})
}

// restoreFollowers makes up for what other nodes said and a rebuilt fold passed over: their entries are lost, who follows is kept.
func (l *loop) restoreFollowers(ctx context.Context, v View) error {
	if !l.store.Shared() {
		return nil
	}
	l.stream.lose()
	f, err := loadFollowed(ctx, v)
	for name, until := range f {
		if name != l.name {
			l.followedUntil = max(l.followedUntil, until)
		}
	}
	return err
}
