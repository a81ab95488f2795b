package rules

import (
	"crypto/rand"
	"math/bits"
	"testing"

	"lessor"
)

func random(t *testing.T) (r [10]byte) {
	t.Helper()
	if _, err := rand.Read(r[:]); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLeaseRevealsTheSeqOfItsJobOnlyToTheStore(t *testing.T) {
	own, other := NewSeal([32]byte{1}), NewSeal([32]byte{2})
	for _, seq := range []int64{0, 1, 255, 256, 65536, 1 << 32, 1<<48 - 1} {
		id := own.LeaseID(seq, random(t))
		same(t, "the seq", own.Seq(id), seq)
		if got := other.Seq(id); got == seq {
			t.Errorf("the seal of another store reads seq %d too", got)
		}
	}
}

// TestLeasesOfTheReleaseBeforeAreFound: their ids are of version 7 and end with the seq as it is.
func TestLeasesOfTheReleaseBeforeAreFound(t *testing.T) {
	id, err := lessor.ParseUUID("01990000-0000-7abc-8abc-0000000a0b0c")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the seq", NewSeal([32]byte{1}).Seq(lessor.LeaseID{UUID: id}), 0x0a0b0c)
}

// TestLeaseIDCannotBeGuessed makes many ids of one instant and of seqs that follow each other: at least 60 bits change
// from id to id as those of random numbers do, and nothing of the seqs shows.
func TestLeaseIDCannotBeGuessed(t *testing.T) {
	const n = 10_000
	s := NewSeal([32]byte{1})
	seen := map[lessor.LeaseID]bool{}
	var ones [128]int
	flips, last := 0, lessor.LeaseID{}
	for seq := range int64(n) {
		id := s.LeaseID(seq, random(t))
		if seen[id] {
			t.Fatalf("id %s was made twice", id)
		}
		seen[id] = true
		for i := range ones {
			ones[i] += int(id.UUID[i/8] >> (7 - i%8) & 1)
		}
		for i := range id.UUID {
			flips += bits.OnesCount8(id.UUID[i] ^ last.UUID[i])
		}
		last = id
		if v := id.UUID[6] >> 4; v != 4 || id.UUID[8]>>6 != 2 {
			t.Fatalf("id %s is no random uuid", id)
		}
	}
	fair := 0
	for _, one := range ones {
		if one > n/2-5*50 && one < n/2+5*50 { // five times the deviation of a fair coin
			fair++
		}
	}
	if fair != 122 {
		t.Errorf("%d bits are as often 1 as 0, want all but the 6 that make it a uuid", fair)
	}
	if mean := float64(flips) / n; mean < 60 || mean > 62 {
		t.Errorf("%.1f bits change from one id to the next, want half of 122", mean)
	}
}

func TestCursorIsReadByItsStoreAlone(t *testing.T) {
	own, other := NewSeal([32]byte{1}), NewSeal([32]byte{2})
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {1, 0}, {1 << 40, 1<<48 - 1}, {1<<48 - 1, 7}} {
		text := own.Cursor(c[0], c[1])
		a, b, err := own.OpenCursor(text)
		same(t, "the numbers", [2]int64{a, b}, c)
		if err != nil {
			t.Error(err)
		}
		if _, _, err := other.OpenCursor(text); err == nil {
			t.Errorf("another store reads the cursor %s", text)
		}
	}
	for _, text := range []string{
		"", "x", "AAAA", own.Cursor(1, 2) + "AA", "!!!!!!!!!!!!!!!!!!!!!!",
		"AAAAAAAAAAAAAAAAAAAAAA",
	} {
		if _, _, err := own.OpenCursor(text); err == nil {
			t.Errorf("cursor %q is accepted", text)
		}
	}
}

func TestJobCursorIsReadByItsStoreAlone(t *testing.T) {
	own, other := NewSeal([32]byte{1}), NewSeal([32]byte{2})
	id := lessor.JobID{UUID: lessor.UUID{1, 2, 3}}
	text := own.JobCursor(id)
	got, err := own.OpenJobCursor(text)
	same(t, "the id", got, id)
	if err != nil {
		t.Error(err)
	}
	if got, err := other.OpenJobCursor(text); got == id || err != nil {
		t.Errorf("another store reads %v, %v, want another place", got, err)
	}
	for _, bad := range []string{"", "x", text + "AA", id.String()} {
		if _, err := own.OpenJobCursor(bad); err == nil {
			t.Errorf("cursor %q is accepted", bad)
		}
	}
}
