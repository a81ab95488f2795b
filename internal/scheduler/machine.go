package scheduler

import (
	"bufio"
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"io"
	"time"

	"github.com/google/uuid"

	"lessor"
)

// Machine has the services of the machine that a scheduler runs on: clock, random numbers and waiting. Its functions
// may be called by every goroutine, its reader by the loop alone.
type Machine struct {
	Now     func() time.Time // the clock of this node; steps of the wall clock do not show in Sub
	UUID    func() lessor.UUID
	Secrets io.Reader // lease ids are made of it
	// Await waits until done receives or is closed; false means that ctx was done first.
	Await func(ctx context.Context, done <-chan struct{}) bool
	// Pause waits until wake receives or is closed, for a time at most, or until ctx is done.
	Pause func(ctx context.Context, wake <-chan struct{}, most time.Duration)
	// Go runs fn beside the caller.
	Go func(fn func())
}

// thisMachine is the machine that the process runs on.
func thisMachine() Machine {
	return Machine{
		Now: time.Now,
		// a uuid v7: ids sort by when they were made
		UUID:    func() lessor.UUID { return lessor.UUID(uuid.Must(uuid.NewV7())) },
		Secrets: bufio.NewReader(cryptorand.Reader), // one system call for the ids of hundreds of leases
		Await:   await,
		Pause:   pause,
		Go:      func(fn func()) { go fn() },
	}
}

func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func pause(ctx context.Context, wake <-chan struct{}, most time.Duration) {
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-wake:
	case <-over.C:
	case <-ctx.Done():
	}
}

// now is the clock of this node; safe for every goroutine.
func (s *Scheduler) now() time.Time { return s.machine.Now() }

func (s *Scheduler) newUUID() lessor.UUID { return s.machine.UUID() }

// number returns a random number above 0, for the loop alone.
func (m *Machine) number() int64 {
	var b [8]byte
	_, _ = io.ReadFull(m.Secrets, b[:]) // it never fails
	return 1 + int64(binary.BigEndian.Uint64(b[:])>>2)
}
