package sqlite

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestStoreThatCleansItsQueueOften runs storetest on a store that deletes left-over rows with every grant; others
// seldom do.
func TestStoreThatCleansItsQueueOften(t *testing.T) {
	runStoretest(t, func(s *Store) { s.queueRows.few = 0 })
}

var (
	released = rules.End{
		Outcome: rules.OutcomeReleased, Said: rules.SaidReleased, Reason: "released", Actor: "worker-0001",
	}
	failed = rules.End{Outcome: rules.OutcomeFailed, Said: rules.SaidFailed, Reason: "failed", Actor: "worker-0001"}
)

// whole holds the places of all jobs, read in every way there is.
type whole struct {
	Standings map[lessor.JobID]rules.Standing
	Queued    map[lessor.JobID]rules.Turn // by reading the queue
	Listed    map[lessor.State][]lessor.JobID
}

func readWhole(t *testing.T, v scheduler.View, specs []*rules.Spec) error {
	t.Helper()
	w, err := tryWhole(t, v, specs)
	if err != nil {
		return err
	}
	queued := map[lessor.JobID]rules.Turn{}
	for id, s := range w.Standings {
		if s.Place == rules.InQueue {
			queued[id] = s.Turn
		}
		if !slices.Contains(w.Listed[s.State()], id) {
			t.Errorf("job %s is %s and not listed as that", id, s.State())
		}
	}
	if diff := cmp.Diff(queued, w.Queued); diff != "" {
		t.Errorf("the queue is not what the standings say (-standings +queue):\n%s", diff)
	}
	n := 0
	for _, ids := range w.Listed {
		n += len(ids)
	}
	if n != len(specs) {
		t.Errorf("%d jobs are listed, and there are %d", n, len(specs))
	}
	return nil
}

func tryWhole(t *testing.T, v scheduler.View, specs []*rules.Spec) (w whole, err error) {
	ctx := t.Context()
	w = whole{map[lessor.JobID]rules.Standing{}, map[lessor.JobID]rules.Turn{}, map[lessor.State][]lessor.JobID{}}
	for _, s := range specs {
		found, err := v.Standings(ctx, []lessor.JobID{s.ID})
		if err != nil {
			return w, err
		}
		w.Standings[s.ID] = *found[s.ID]
	}
	for _, state := range lessor.States() {
		for q := (scheduler.ListQuery{State: state, Limit: 7}); ; {
			page, err := v.List(ctx, q)
			if err != nil {
				return w, err
			}
			for _, s := range page.Standings {
				w.Listed[state] = append(w.Listed[state], s.Spec.ID)
			}
			if q.After = page.Next; page.Next == nil {
				break
			}
		}
	}
	err = v.EachQueued(ctx, func(turn rules.Turn) error {
		w.Queued[turn.Job] = turn
		return nil
	})
	return w, err
}

// wholeOf reads a store and checks that all ways of reading agree, in a view and in a transaction.
func wholeOf(t *testing.T, s *Store, specs []*rules.Spec) (w whole) {
	t.Helper()
	inView(t, s, func(v scheduler.View) (err error) {
		if err = readWhole(t, v, specs); err == nil {
			w, err = tryWhole(t, v, specs)
		}
		return err
	})
	update(t, s, func(tx scheduler.Tx) error { return readWhole(t, tx, specs) })
	return w
}

// scatter makes jobs and grants some of them, which end in every way and leave rows behind in the queue.
func scatter(t *testing.T, s *Store) []*rules.Spec {
	t.Helper()
	specs := drafts(60)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	var odd []*rules.Spec
	for i := 1; i < len(specs); i += 2 {
		odd = append(odd, specs[i])
	}
	var held []*rules.Held
	update(t, s, func(tx scheduler.Tx) (err error) {
		held, err = grant(t.Context(), tx, odd)
		return err
	})
	ids := leaseIDs(held)
	update(t, s, func(tx scheduler.Tx) error {
		return errors.Join(beat(t.Context(), tx, ids[:9]), finish(t.Context(), tx, ids[:6], completed),
			finish(t.Context(), tx, ids[6:12], failed), finish(t.Context(), tx, ids[12:18], released))
	})
	return specs
}

// crashed copies the files of an open database, as they would be found after a crash, and opens the copy.
func crashed(t *testing.T, s *Store) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lessor.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(s.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openAt(t, Config{Path: path})
}

func restarted(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, Config{Path: s.path})
}

func restored(t *testing.T, s *Store) *Store {
	t.Helper()
	var copied bytes.Buffer
	if err := s.Backup(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, &copied); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := Verify(t.Context(), path); err != nil || n != 60 {
		t.Errorf("the copy has %d jobs: %v", n, err)
	}
	return openAt(t, Config{Path: path})
}

func rows(t *testing.T, s *Store, table string) int {
	t.Helper()
	n, err := count(s.writer.conn, "select count(*) from "+table)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// again has the ways to open a store on the files of another.
var again = map[string]func(*testing.T, *Store) *Store{"restart": restarted, "crash": crashed, "backup": restored}

// TestLeftRowsAreNoPlace: rows that grants left in the queue show nowhere, whoever reads and whenever the store is
// opened.
func TestLeftRowsAreNoPlace(t *testing.T) {
	for name, open := range again {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, Config{})
			specs := scatter(t, s)
			before := wholeOf(t, s, specs)
			if n, left := rows(t, s, "queue"), s.queueRows.fresh.n; n != 60 || left != 24 {
				t.Fatalf("%d rows in the queue, %d of them left over; want 60, and 24 of the 30 that were granted",
					n, left)
			}
			next := open(t, s)
			if diff := cmp.Diff(before, wholeOf(t, next, specs)); diff != "" {
				t.Fatalf("afterwards it is not as it was (-before +after):\n%s", diff)
			}
			if next.queueRows.fresh.n != 24 {
				t.Errorf("%d rows are known to be left over, want 24", next.queueRows.fresh.n)
			}
			deleteLeftRows(t, next, specs)
		})
	}
}

// deleteLeftRows has a store delete its left-over rows, and checks that nothing else changes. It is opened again at
// every step.
func deleteLeftRows(t *testing.T, s *Store, specs []*rules.Spec) {
	t.Helper()
	fillers := drafts(40)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, fillers) })
	s.queueRows.few = 1
	s.queueRows.keep()
	before := wholeOf(t, s, append(slices.Clone(specs), fillers...))
	for i := range 20 {
		update(t, s, func(tx scheduler.Tx) error {
			_, err := grant(t.Context(), tx, fillers[2*i:2*i+2])
			return err
		})
		if i%5 == 4 {
			s = crashed(t, s)
			s.queueRows.few = 1
		}
	}
	if n := rows(t, s, "queue") - s.queueRows.queued.n; n > 20 || n != s.queueRows.fresh.n+s.queueRows.due.n {
		t.Errorf("%d rows are left over, and %d are known to be", n, s.queueRows.fresh.n+s.queueRows.due.n)
	}
	after := wholeOf(t, s, append(slices.Clone(specs), fillers...))
	for _, f := range fillers {
		delete(before.Standings, f.ID)
		delete(after.Standings, f.ID)
	}
	if diff := cmp.Diff(before.Standings, after.Standings); diff != "" {
		t.Errorf("deleting what was left over changed something (-before +after):\n%s", diff)
	}
}

// TestJobComesBackIntoTheQueue: a job that was granted and given back is in the queue as it is now, and not as the row
// that its grant left there, before that row is deleted and after, and whenever the store is opened.
func TestJobComesBackIntoTheQueue(t *testing.T) {
	same := func(_ *testing.T, s *Store) *Store { return s }
	ways := maps.Clone(again)
	delete(ways, "backup") // counts other jobs
	ways["goes on"] = same
	for name, open := range ways {
		for _, few := range []int{fewLeft, 0} {
			t.Run(name, func(t *testing.T) {
				s := openAt(t, Config{})
				specs := drafts(30)
				update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
				for round := range 5 {
					s.queueRows.few = few
					var held []*rules.Held
					update(t, s, func(tx scheduler.Tx) error { // the turns as the queue has them
						var moves []scheduler.Move
						err := tx.EachQueued(t.Context(), func(turn rules.Turn) error {
							if turn.Attempt != 0 || turn.Interruptions != round && turn.Seq%3 == 0 {
								t.Errorf("round %d: the queue has %+v", round, turn)
							}
							if turn.Seq%3 == 0 {
								h := rules.Grant(lessor.LeaseID{UUID: uuid()}, turn, specs[0], "w", 1e9, tx.Now())
								held = append(held, h)
								moves = append(moves, scheduler.Move{
									From: rules.InQueue, To: rules.Leased, Turn: turn, Held: h,
								})
							}
							return nil
						})
						return errors.Join(err, tx.Move(t.Context(), moves))
					})
					s = open(t, s)
					wholeOf(t, s, specs)
					update(t, s, func(tx scheduler.Tx) error {
						return finish(t.Context(), tx, leaseIDs(held), released)
					})
					wholeOf(t, s, specs)
					s = open(t, s)
					if n := len(wholeOf(t, s, specs).Queued); n != 30 || len(held) != 10 {
						t.Fatalf("round %d: %d were granted and %d are queued, want 10 and 30", round, len(held), n)
					}
				}
			})
		}
	}
}

// TestLeftRowsGoInPages: no commit deletes more than twice what it grants, and what is left over stays bounded.
func TestLeftRowsGoInPages(t *testing.T) {
	s := openAt(t, Config{})
	s.queueRows.few = 100
	specs := drafts(2000)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	mixed := slices.Clone(specs)
	for i := range mixed { // far apart, as jobs of many tenants are
		mixed[i] = specs[i*777%len(specs)]
	}
	most, log := 0, 0
	for i := 0; i < 1900; i += 10 {
		before := rows(t, s, "queue")
		update(t, s, func(tx scheduler.Tx) error {
			_, err := grant(t.Context(), tx, mixed[i:i+10])
			return err
		})
		after := rows(t, s, "queue")
		if before-after > 20 {
			t.Fatalf("a commit that granted 10 deleted %d rows", before-after)
		}
		most, log = max(most, after-s.queueRows.queued.n), max(log, rows(t, s, "gone"))
	}
	if most > 2*250 || most < 200 { // an eighth of 2000, and of what is queued when that many were granted
		t.Errorf("up to %d rows were left over, want 200 to 500", most)
	}
	if log > 60 || rows(t, s, "gone") > 40 {
		t.Errorf("the log had up to %d rows and has %d: it is not cut", log, rows(t, s, "gone"))
	}
	wholeOf(t, s, specs)
}

// TestSeqSet compares a set with a map.
func TestSeqSet(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		set, want := newSeqSet(), map[int64]bool{}
		for range rapid.IntRange(0, 300).Draw(r, "steps") {
			seq, in := rapid.Int64Range(0, 3000).Draw(r, "seq"), rapid.Bool().Draw(r, "in")
			if set.set(seq, in) != (want[seq] != in) {
				r.Fatalf("set %d to %t: whether that is a change is wrong", seq, in)
			}
			if want[seq] = in; !in {
				delete(want, seq)
			}
			if set.has(seq) != in {
				r.Fatalf("%d is not as it was set", seq)
			}
		}
		var got []int64
		for _, key := range set.keys() {
			got = set.appendChunk(got, key)
		}
		if all := slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) || set.n != len(all) {
			r.Fatalf("%d: %v, want %v", set.n, got, all)
		}
	})
}
