package scheduler

import (
	"slices"

	"lessor"
)

// tenantWorkers are the workers that call with tokens of one tenant, or with tokens that are bound to none.
type tenantWorkers struct {
	workers recent[seenWorker]
	types   recent[struct{}] // that any of them asked for
	all     lessor.Instant   // when one last asked for all types, or for one that is not kept any more
}

// seenWorker is what is known of one worker.
type seenWorker struct {
	agent string
	all   lessor.Instant // when it last asked for all types
	types []askedType
	asked uint64 // what it asked for when that was last noted, hashed
	noted lessor.Instant
}

// askedType is a type that a worker asked for. Its name is kept once for all workers of the tenant.
type askedType struct {
	*seen[struct{}]
	at lessor.Instant
}

// lately reports whether something that happened at an instant still counts.
func lately(at, now lessor.Instant) bool { return at != 0 && now.Sub(at) <= workerLife }

// asks reports whether a worker of the tenant asked for a type lately. A tenant that requests more types than are kept
// counts as requesting all.
func (c *tenantWorkers) asks(typ string, now lessor.Instant) bool {
	if c == nil {
		return false
	}
	t := c.types.find(typ)
	return lately(c.all, now) || t != nil && lately(t.at, now)
}

// dropType forgets the type that was asked for least recently. If a worker asked for it lately, the tenant counts as
// asking for all types.
func (c *tenantWorkers) dropType(now lessor.Instant) {
	if old := c.types.oldest(); lately(old.at, now) {
		c.all = max(c.all, old.at)
	}
	c.types.drop()
}

// setBack moves instants in the future to now, after the clock was set back: they would count as recent until the clock
// reaches them again.
func (c *tenantWorkers) setBack(now lessor.Instant) {
	c.all = min(c.all, now)
	c.types.setBack(now)
	c.workers.setBack(now)
	c.workers.each(func(w *seen[seenWorker]) bool {
		s := &w.is
		s.all, s.noted = min(s.all, now), min(s.noted, now)
		for i := range s.types {
			s.types[i].at = min(s.types[i].at, now)
		}
		return true
	})
}

// ask notes that a worker asks for a type.
func (s *seenWorker) ask(typ *seen[struct{}], now lessor.Instant) {
	oldest := 0
	for i := range s.types {
		if s.types[i].seen == typ {
			s.types[i].at = now
			return
		}
		if s.types[i].at < s.types[oldest].at {
			oldest = i
		}
	}
	if len(s.types) < maxTypesEach {
		s.types = append(s.types, askedType{typ, now})
	} else if s.types[oldest].at < now {
		s.types[oldest] = askedType{typ, now}
	}
}

// asksFor returns the types that a worker asked for lately, by name; none = all.
func (s *seenWorker) asksFor(now lessor.Instant) []string {
	names := []string{}
	if lately(s.all, now) {
		return names
	}
	for _, t := range s.types {
		if t.name != "" && lately(t.at, now) {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *tenantWorkers) find(name string) *seen[seenWorker] {
	if c == nil {
		return nil
	}
	return c.workers.find(name)
}
