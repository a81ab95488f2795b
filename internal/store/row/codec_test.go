package row

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// tape is a row: it takes values, and returns them in the same order.
type tape struct {
	values []any
	kinds  []byte
	n      int
}

func (t *tape) put(k Kind, v any) { t.values, t.kinds = append(t.values, v), append(t.kinds, k) }

func (t *tape) Null(k Kind)      { t.put(k, nil) }
func (t *tape) Int(v int64)      { t.put(KindInt, v) }
func (t *tape) Real(v float64)   { t.put(KindReal, v) }
func (t *tape) Flag(v bool)      { t.put(KindFlag, v) }
func (t *tape) Text(v string)    { t.put(KindText, v) }
func (t *tape) Bytes(v []byte)   { t.put(KindBytes, v) }
func (t *tape) ID(v lessor.UUID) { t.put(KindID, v) }

// player reads a tape.
type player struct{ *tape }

func next[T any](p *player) T {
	v, _ := p.values[p.n].(T)
	p.n++
	return v
}

func (p *player) Int() int64      { return next[int64](p) }
func (p *player) Real() float64   { return next[float64](p) }
func (p *player) Flag() bool      { return next[bool](p) }
func (p *player) Text() string    { return next[string](p) }
func (p *player) Bytes() []byte   { return next[[]byte](p) }
func (p *player) ID() lessor.UUID { return next[lessor.UUID](p) }

func (p *player) Null() bool {
	null := p.values[p.n] == nil
	if null {
		p.n++
	}
	return null
}

// roundTrip writes values and reads them again: they come back, and the columns listed are those written.
func roundTrip[T any](t *testing.T, declare func(*Codec, *T), values ...T) {
	t.Helper()
	for _, implied := range []bool{false, true} {
		for _, want := range append(values, *new(T)) {
			row := &tape{}
			to, from := Write(row), Read(&player{row})
			to.ImpliedTrace, from.ImpliedTrace = implied, implied
			before := want
			declare(to, &want)
			if d := cmp.Diff(before, want); d != "" {
				t.Errorf("writing changed the value (-before +after):\n%s", d)
			}
			if string(row.kinds) != Kinds(declare) {
				t.Errorf("wrote columns of the kinds %s, listed are %s: %s", row.kinds, Kinds(declare),
					Columns(declare))
			}
			var got T
			declare(from, &got)
			if s, ok := any(&want).(*rules.Spec); ok && implied && s.TraceID == "" {
				s.TraceID = "00000000000000000000000000000000" // "" stands for the id
			}
			if d := cmp.Diff(want, got); d != "" || from.Err != nil {
				t.Errorf("%T does not come back (-want +got): %v\n%s", want, from.Err, d)
			}
		}
	}
}

// TestRowsComeBack: storetest does the same with both databases, and with all fields.
func TestRowsComeBack(t *testing.T) {
	id := lessor.UUID{15: 7}
	roundTrip(t, Job, rules.Spec{
		ID: lessor.JobID{UUID: id}, Seq: 3, LaneID: 4, Tags: []string{"a", "\x00"}, IdempotencyKey: "k", MaxAttempts: 5,
		MaxRuntime: time.Second, TraceID: "00000000000000000000000000000007", Payload: []byte("{}"),
	}, rules.Spec{TraceID: "given", Payload: []byte{}})
	roundTrip(t, Lease, rules.Held{ID: lessor.LeaseID{UUID: id}, Turn: rules.Turn{Fence: 9}, Worker: "w", Bound: true})
	roundTrip(t, Beat, rules.Held{Life: rules.Life{ExpiresAt: 1, TTL: time.Minute, Reattached: 3}})
	roundTrip(t, Attempt, rules.Attempt{Lease: lessor.LeaseID{UUID: id}, Outcome: rules.OutcomeFailed, Error: "e"})
	roundTrip(t, Done, rules.Done{State: lessor.Completed, Result: []byte("1")})
	roundTrip(t, Output, rules.OutputPiece{Data: []byte("\x00o")})
	roundTrip(t, OutputMiddle, rules.OutputMiddle{From: 1, To: 2})
	roundTrip(t, Report, rules.Report{
		Progress: new(0.0), Message: new(""), Interrupted: &rules.Progress{Checkpoint: []byte("c")},
	})
	roundTrip(t, Token, scheduler.Token{Hash: [32]byte{1}, Tenant: &lessor.TenantID{}})
	roundTrip(t, Definition, rules.Definition{ID: "d", Enabled: true, Payload: []byte("{}")})
	roundTrip(t, WholeAlert, lessor.Alert{Kind: lessor.AlertDead, AcknowledgedBy: new("ann")})
}
