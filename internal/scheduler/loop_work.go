package scheduler

// work is what one commit answers, by kind.
type work struct {
	submits  []*submitCall
	beats    []*beatCall
	ends     []*endCall
	changes  []*changeCall
	requests []*requestCall
	reads    []*readCall
}

func (w *work) empty() bool { return w.count()+len(w.changes) == 0 }

// count is how many calls share a transaction.
func (w *work) count() int { return len(w.submits) + len(w.beats) + len(w.ends) + len(w.requests) }

// sortCalls sorts calls by kind, without those whose caller has gone.
func sortCalls(ops []op) *work {
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
		case *readCall:
			w.reads = append(w.reads, o)
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

// all returns every call.
func (w *work) all() []op {
	all := w.hot()
	for _, c := range w.changes {
		all = append(all, c)
	}
	for _, c := range w.reads {
		all = append(all, c)
	}
	return all
}
