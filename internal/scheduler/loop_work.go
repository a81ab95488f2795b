package scheduler

import "slices"

// work is what one commit answers, by kind.
type work struct {
	submits  []*submitCall
	beats    []*beatCall
	ends     []*endCall
	changes  []*changeCall
	requests []*requestCall
	reads    []*readCall
	turns    []*turnCall // their parts are above
	taken    int         // calls from the queue; a turn is one
}

func (w *work) empty() bool { return w.count()+len(w.changes) == 0 }

// count is how many calls share a transaction.
func (w *work) count() int { return len(w.submits) + len(w.beats) + len(w.ends) + len(w.requests) }

// sortCalls sorts calls by kind, without those whose caller has gone.
func sortCalls(ops []op) *work {
	w := work{taken: len(ops)}
	for _, o := range ops {
		w.add(o)
	}
	return &w
}

func (w *work) add(o op) {
	if t, ok := o.(*turnCall); ok {
		w.turns = append(w.turns, t)
		for _, part := range t.parts {
			w.add(part)
		}
		return
	}
	if o.base().abandoned() {
		return
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

// whole returns the calls that share a transaction, and turns in place of their parts, which one commit answers.
func (w *work) whole() []op {
	all := slices.DeleteFunc(w.hot(), func(o op) bool { return o.base().part })
	for _, t := range w.turns {
		all = append(all, t)
	}
	return all
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
