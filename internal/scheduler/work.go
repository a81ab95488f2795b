package scheduler

// work is what one commit answers, by kind.
type work struct {
	submits  []*submitCall
	beats    []*beatCall
	ends     []*endCall
	changes  []*changeCall
	requests []*requestCall
}

func (w *work) empty() bool {
	return len(w.submits)+len(w.beats)+len(w.ends)+len(w.changes)+len(w.requests) == 0
}

// gather takes the calls of the next commit. Looks at the fold are answered here: they need no transaction.
func (s *Scheduler) gather() *work {
	return s.sort(s.calls.Take(batchLimit))
}

func (s *Scheduler) sort(ops []op) *work {
	var w work
	for _, o := range ops {
		if o.base().abandoned() {
			continue
		}
		switch o := o.(type) {
		case *submitCall:
			w.submits = append(w.submits, o)
		case *beatCall:
			w.beats = append(w.beats, o)
		case *endCall:
			w.ends = append(w.ends, o)
		case *changeCall:
			w.changes = append(w.changes, o)
		case *requestCall:
			w.requests = append(w.requests, o)
		case *lookCall:
			o.fn()
			o.answer(nil)
		}
	}
	return &w
}

// hot returns the calls that share a transaction.
func (w *work) hot() []op {
	var all []op
	for _, c := range w.beats {
		all = append(all, c)
	}
	for _, c := range w.submits {
		all = append(all, c)
	}
	for _, c := range w.ends {
		all = append(all, c)
	}
	for _, c := range w.requests {
		all = append(all, c)
	}
	return all
}
