package worker

import "time"

// SetWall gives w another wall clock. It must not run yet.
func (w *Worker) SetWall(now func() time.Time) { w.wall = now }
