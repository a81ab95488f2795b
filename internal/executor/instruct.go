package executor

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"lessor"
)

// instructionName is the file by which a Runner talks to a shim. The shim may be one of an earlier Runner, to which
// there is no connection, and no process id is stored.
const instructionName = ".instruction"

// instruction is its content.
type instruction struct {
	// Nonce tells an instruction from an equal one before it.
	Nonce string `json:"nonce"`
	// Lease is the lease of the attempt for which the instruction is.
	Lease lessor.LeaseID `json:"lease_id"`
	// Stop asks to end the command, with at most GraceMS between SIGTERM and SIGKILL, and to give the lease back.
	Stop    bool  `json:"stop,omitempty"`
	GraceMS int64 `json:"grace_ms,omitempty"`
}

// instruct sends an instruction to the shim of a lease, if there is one. If the file cannot be written, because the
// disk is full, a stop reaches a shim that this Runner started as SIGTERM, which does not change the kill grace.
func (r *Runner) instruct(in instruction) {
	r.mu.Lock()
	a := r.live[in.Lease]
	r.mu.Unlock()
	job := a.job
	if job.IsZero() {
		return
	}
	in.Nonce = rand.Text()
	data, err := json.Marshal(in)
	if err == nil {
		err = r.write(job, instructionName, data)
	}
	if err != nil && in.Stop && a.shim != nil && a.shim.Signal(syscall.SIGTERM) == nil {
		return
	}
	if err != nil {
		r.cfg.Log.Warn("an instruction could not be sent to a shim", "job_id", job.String(), "error", err)
	}
}

// hasBegun records that the command of a shim of this Runner has begun. From then on the shim takes signals.
func (r *Runner) hasBegun(lease lessor.LeaseID, shim *os.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.live[lease]
	a.shim = shim
	r.live[lease] = a
}

// write writes a file of a job's folder.
func (r *Runner) write(job lessor.JobID, name string, data []byte) error {
	f, err := r.w.Folder(job)
	if err != nil {
		return fmt.Errorf("open the job's folder: %w", err)
	}
	return errors.Join(f.WriteFile(name, data), f.Close())
}

// readInstruction follows an instruction that is new and for this attempt.
func (s *shim) readInstruction() {
	data, err := s.folder.ReadFile(instructionName, maxUpdate)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(data, s.instructed) {
		return
	}
	var in instruction
	if err == nil {
		s.instructed = data
		err = json.Unmarshal(data, &in)
	}
	s.warnOnce("an instruction", err)
	switch {
	case err != nil || in.Lease != s.order.Grant.Lease.ID:
	case in.Stop:
		s.killGrace.Store(min(in.GraceMS*int64(time.Millisecond), s.killGrace.Load()))
		s.stop(errTerminated)
	}
}
