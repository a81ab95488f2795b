package sentinel

import (
	"os"
	"testing"
)

func TestOneHolderOfAFolder(t *testing.T) {
	w := open(t)
	f, again := makeFolder(t, w, jobA), makeFolder(t, w, jobA)
	wantLocked(t, f, false)
	held, err := f.Lock()
	if err != nil || held == nil {
		t.Fatalf("lock a free folder: %v, %v", held, err)
	}
	if second, err := again.Lock(); err != nil || second != nil {
		t.Errorf("lock a held folder: %v, %v", second, err)
	}
	wantLocked(t, again, true)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	wantLocked(t, again, false)
}

func wantLocked(t *testing.T, f *Folder, want bool) {
	t.Helper()
	if got, err := f.Locked(); err != nil || got != want {
		t.Errorf("locked = %t, %v; want %t", got, err, want)
	}
}

func TestStopConcernsLowerFencesOnly(t *testing.T) {
	f := makeFolder(t, open(t), jobA)
	asked := func(fence int64) bool {
		t.Helper()
		yes, err := f.AskedToStop(fence)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if asked(1) {
		t.Error("asked to stop by nobody")
	}
	if err := f.AskToStop(8); err != nil {
		t.Fatal(err)
	}
	if !asked(7) || asked(8) || asked(9) {
		t.Errorf("below 8: 7 %t, 8 %t, 9 %t", asked(7), asked(8), asked(9))
	}
	for _, text := range []string{"", "x", "9999999999999999999999"} {
		if err := os.WriteFile(f.Join(".stop"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if yes, err := f.AskedToStop(1); yes || err == nil {
			t.Errorf("%q: asked = %t, %v", text, yes, err)
		}
	}
}

func TestRemovedFolderIsGone(t *testing.T) {
	w := open(t)
	f := makeFolder(t, w, jobA)
	if f.Gone() {
		t.Error("gone while it is there")
	}
	if err := w.Remove(jobA); err != nil {
		t.Fatal(err)
	}
	if !f.Gone() {
		t.Error("there when it is gone")
	}
	if next := makeFolder(t, w, jobA); !f.Gone() || next.Gone() {
		t.Errorf("its place was taken: the old one gone %t, the new one %t", f.Gone(), next.Gone())
	}
}
