package scheduler

import (
	"math"
	"time"
)

// TakeForAlone has a node take itself to be alone on its store, whatever others do. Call it before Run.
func (s *Scheduler) ActAsSoleNode() { s.sharedFor = -1 }

// TakeForCrowded has a node take itself for one of several. Call it before Run.
func (s *Scheduler) ActAsOneOfSeveral() { s.sharedFor = math.MaxInt64 }

// SweepLanesEvery has lanes go sooner than after two hours. Call it before Run.
func (s *Scheduler) SweepLanesEvery(d time.Duration) { s.laneEvery = d }
