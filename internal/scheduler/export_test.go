package scheduler

// TakeForAlone has a node take itself to be alone on its store, whatever others do. Call it before Run.
func (s *Scheduler) TakeForAlone() { s.crowdedFor = -1 }
