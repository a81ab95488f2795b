package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"lessor"
)

// The limits of a worker's calls.
const (
	maxWorker    = 200
	maxTypes     = 200
	maxLeases    = 500
	maxWait      = 30 * time.Second
	minTTL       = 100 * time.Millisecond
	maxTTL       = 12 * time.Hour
	maxUnitsAsk  = math.MaxInt32
	maxWorkspace = 200
	maxDelay     = 30 * 24 * time.Hour
	maxReason    = 200
	// minStartDelay is the least delay of a job that a worker could not start.
	minStartDelay = time.Second
)

// Ask is a valid lease request.
type Ask struct {
	Worker      string
	Types       []string // empty = all
	MaxUnits    int      // 0 = any
	MaxLeases   int
	Wait        time.Duration
	RequestID   string
	TTL         time.Duration // 0 = the server's
	WorkspaceID string
}

// Request checks a lease request. prefix is that of its fields, if it is a part of another request.
func Request(r *lessor.LeaseRequest, prefix string) (Ask, error) {
	if r.WorkerID == nil {
		return Ask{}, Missing("worker_id")
	}
	c := check{prefix: prefix}
	a := Ask{
		Worker:    c.text("worker_id", r.WorkerID, 1, maxWorker, ""),
		Types:     r.Types,
		MaxUnits:  int(c.number("max_units", r.MaxUnits, 1, maxUnitsAsk, 0)),
		MaxLeases: int(c.number("max_leases", r.MaxLeases, 1, maxLeases, 1)),
		Wait:      c.millis("wait_ms", r.WaitMS, 0, maxWait, 0),
		RequestID: c.text("request_id", r.RequestID, 1, maxKey, ""),
		TTL:       c.millis("ttl_ms", r.TTLMS, minTTL, maxTTL, 0),
	}
	a.WorkspaceID = c.text("workspace_id", r.WorkspaceID, 1, maxWorkspace, "")
	if v := r.View; v != nil && *v != lessor.ViewFull && *v != lessor.ViewWork {
		c.fail("view", "must be %s or %s, not %q", lessor.ViewFull, lessor.ViewWork, *r.View)
	}
	if len(r.Types) > maxTypes {
		c.fail("types", "must be at most %d, not %d", maxTypes, len(r.Types))
		return a, c.err()
	}
	for i := range r.Types {
		c.text(fmt.Sprintf("types[%d]", i), &r.Types[i], 1, maxType, "")
	}
	return a, c.err()
}

// WorkerTurn checks that a turn has a worker and at least one part, and returns the worker.
func WorkerTurn(t *lessor.Turn) (worker string, err error) {
	if worker, err = WorkerID(t.WorkerID); err != nil {
		return "", err
	}
	if len(t.Complete)+len(t.Heartbeat) == 0 && t.Request == nil {
		return "", WrongField("body", "must have complete, heartbeat or request")
	}
	return worker, nil
}

// BeatAsk is a valid heartbeat.
type BeatAsk struct {
	Worker string
	TTL    time.Duration // 0 = as before
	Report *Report       // nil = it reports nothing
	Append []Entry       // to the journal
	After  int64         // the number of the last entry of the journal that the worker knows
	Output []lessor.OutputChunk
	// OutputOnly says that the call is no heartbeat, but brings output under the lease.
	OutputOnly bool
	Seen       int64 // confirms the job's messages up to this number
}

// Heartbeat checks a heartbeat.
func Heartbeat(b *lessor.Heartbeat) (BeatAsk, error) {
	if b.WorkerID == nil {
		return BeatAsk{}, Missing("worker_id")
	}
	var c check
	a := BeatAsk{
		Worker: c.text("worker_id", b.WorkerID, 1, maxWorker, ""),
		TTL:    c.millis("ttl_ms", b.TTLMS, minTTL, maxTTL, 0),
		Seen:   c.number("messages_seen", b.MessagesSeen, 0, math.MaxInt64, 0),
	}
	if r := c.report(b.Progress, b.Message, b.Checkpoint); !r.Empty() {
		a.Report = new(r) // a copy, so that a heartbeat without a report allocates nothing
	}
	a.Output = c.output("output", b.Output, lessor.MaxOutputBeat)
	return a, c.err()
}

// report checks a report. What is nil, and a checkpoint that is null, stays as it was.
func (c *check) report(progress *float64, message *string, checkpoint json.RawMessage) Report {
	if p := progress; p != nil && !(*p >= 0 && *p <= 1) {
		c.fail("progress", "must be 0 to 1, not %v", *p)
	}
	c.text("message", message, 0, lessor.MaxMessage, "")
	if len(checkpoint) > lessor.MaxCheckpoint {
		c.fail("checkpoint", "must be at most %d bytes, not %d", lessor.MaxCheckpoint, len(checkpoint))
	}
	return Report{Progress: progress, Message: message, Checkpoint: nullToNil(checkpoint)}
}

func nullToNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// Completion checks a worker's completion and returns the end of the attempt, with the last report. prefix goes
// before the names of wrong fields in a batch, which asks no questions.
func Completion(d *lessor.Completion, prefix string) (End, error) {
	var c check
	c.require("worker_id", d.WorkerID != nil)
	worker := c.text("worker_id", d.WorkerID, 1, maxWorker, "") // without the prefix: a batch has one
	c.prefix = prefix
	if c.require("status", d.Status != nil); d.Status == nil {
		return End{}, c.err()
	}
	e := End{Actor: worker, Result: nullToNil(d.Result), Final: d.Retryable != nil && !*d.Retryable}
	if d.Error != nil {
		e.Error = *d.Error
		if len(e.Error) > lessor.MaxErrorText {
			c.fail("error", "must be at most %d bytes, not %d", lessor.MaxErrorText, len(e.Error))
		}
		c.text("error", d.Error, 0, math.MaxInt, "") // the length is checked above, in bytes
	}
	switch s := Said(*d.Status); {
	case s == SaidWaiting && prefix != "":
		c.fail("status", "must be completed, failed or cancelled; to ask a question, complete the lease alone")
	case s == SaidCompleted, s == SaidFailed, s == SaidCancelled, s == SaidWaiting:
		e.Said, e.Outcome, e.Reason = said(*d.Status, e.Result, e.Error), Outcome(*d.Status), *d.Status
	default:
		c.fail("status", "must be completed, failed, cancelled or waiting, not %q", *d.Status)
	}
	c.asking(&e, d)
	e.Report = c.report(d.Progress, d.Message, d.Checkpoint)
	return e, c.err()
}

// said returns a completion as it is remembered: its status, and a digest of result and error if there are any. Spaces
// in the result do not count.
func said(status string, result json.RawMessage, text string) Said {
	if result == nil && text == "" {
		return Said(status)
	}
	var b bytes.Buffer
	if json.Compact(&b, result) != nil {
		b.Write(result)
	}
	sum := sha256.Sum256(append(append(b.Bytes(), 0), text...)) // NUL is in no JSON: the two cannot run together
	return Said(status + " " + hex.EncodeToString(sum[:8]))
}

// Release checks a release and returns the end of the attempt, with the last report.
func Release(r *lessor.Release) (End, error) {
	if r.WorkerID == nil {
		return End{}, Missing("worker_id")
	}
	var c check
	e := End{
		Outcome: OutcomeReleased, Said: SaidReleased, Reason: string(SaidReleased),
		Actor: c.text("worker_id", r.WorkerID, 1, maxWorker, ""),
		Delay: c.millis("delay_ms", r.DelayMS, 0, maxDelay, 0),
	}
	if r.Reason != nil {
		c.releaseReason(&e, *r.Reason)
	}
	e.Report = c.report(r.Progress, r.Message, r.Checkpoint)
	return e, c.err()
}

// releaseReason notes why a release is no interruption. A job that could not be started gets a delay, because no bound
// on interruptions stops it from going back and forth between a worker and the queue at full speed.
func (c *check) releaseReason(e *End, reason string) {
	e.Reason, e.Uncounted = reason, true
	switch reason {
	case lessor.ReleaseCannotStart, lessor.ReleaseFolderHeld:
		e.Delay = max(e.Delay, minStartDelay)
	case lessor.ReleaseUndelivered:
	default:
		c.fail("reason", "must be %s, %s or %s, not %q", lessor.ReleaseCannotStart, lessor.ReleaseFolderHeld,
			lessor.ReleaseUndelivered, reason)
	}
}

// Revoke checks an operator's reason and returns the end of the attempt.
func Revoke(reason, actor string) (End, error) {
	var c check
	c.text("reason", &reason, 0, maxReason, "")
	return End{Outcome: OutcomeFailed, Reason: ReasonRevoked, Actor: actor, Error: reason}, c.err()
}

// WorkerID checks the worker of a batched call.
func WorkerID(worker *string) (string, error) {
	if worker == nil {
		return "", Missing("worker_id")
	}
	var c check
	return c.text("worker_id", worker, 1, maxWorker, ""), c.err()
}

// HoldFor checks how long a call may be held; nil = not at all.
func HoldFor(waitMS *int64) (time.Duration, error) {
	var c check
	return c.millis("wait_ms", waitMS, 0, maxWait, 0), c.err()
}

// CancelAsk is a worker's request to be notified about its leases, or about One of them.
type CancelAsk struct {
	Worker string
	One    bool
	Lease  lessor.LeaseID
	Wait   time.Duration
}

// CancelWait checks such a request. An ill-formed lease id is treated as an unknown one: there is nothing to report.
func CancelWait(w *lessor.CancelWait) (CancelAsk, error) {
	if w.WorkerID == nil {
		return CancelAsk{}, Missing("worker_id")
	}
	var c check
	ask := CancelAsk{
		Worker: c.text("worker_id", w.WorkerID, 1, maxWorker, ""), Wait: c.millis("wait_ms", w.WaitMS, 0, maxWait, 0),
	}
	if ask.One = w.LeaseID != nil; ask.One {
		ask.Lease.UUID, _ = lessor.ParseUUID(*w.LeaseID)
	}
	return ask, c.err()
}
