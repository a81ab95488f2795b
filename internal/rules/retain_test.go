package rules

import (
	"errors"
	"testing"
	"time"

	"lessor"
)

func TestRetainPage(t *testing.T) {
	for _, c := range []struct {
		name  string
		last  int
		took  time.Duration
		full  bool
		ended int
		want  int
	}{
		{"the first", 0, 0, false, 0, 250},
		{"full and quick", 500, quickPage - 1, true, 0, 1000},
		{"full and not quick", 500, quickPage, true, 0, 500},
		{"quick and not full", 500, 0, false, 0, 500},
		{"not yet too slow", 1000, slowPage, true, 0, 1000},
		{"too slow", 1000, slowPage + 1, true, 0, 500},
		{"too slow, as small as can be", 250, time.Second, true, 0, 250},
		{"as large as can be", 3000, 0, true, 0, 4000},
		{"as many ended as the page had", 1000, slowPage, true, 800, 1000},
		{"more ended", 1000, slowPage, true, 804, 1005},
		{"more ended, although it was slow", 1000, slowPage + 1, true, 1000, 1250},
		{"more ended than a page may have", 1000, 0, true, 10_000, 4000},
	} {
		if got := RetainPage(c.last, c.took, c.full, c.ended); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestHandlersAreBounded(t *testing.T) {
	if err := HandlerRoom(maxHandlers - 1); err != nil {
		t.Errorf("the last handler is refused: %v", err)
	}
	if err := HandlerRoom(maxHandlers); !errors.Is(err, &lessor.Error{Code: lessor.CodeConflict}) {
		t.Errorf("one handler too many: %v, want a conflict", err)
	}
}

func TestUnusedLanesGetNoticeAndAreRemoved(t *testing.T) {
	const notice, gone = "notice", "gone"
	for _, c := range []struct {
		name            string
		used            bool
		noticed, before int64
		want            string
	}{
		{name: "a job refers to it", used: true},
		{name: "a job of before its notice refers to it", used: true, noticed: 7, before: 7},
		{name: "nothing refers to it", want: notice},
		{name: "its notice was ended", before: 7, want: notice},
		{name: "on notice since the last look", noticed: 7},
		{name: "on notice anew since the last look", noticed: 8, before: 7},
		{name: "on notice at the last look too", noticed: 7, before: 7, want: gone},
	} {
		const id = LaneID(3)
		n, g := LanesToGo([]LaneID{id}, map[LaneID]bool{id: c.used}, map[LaneID]int64{id: c.noticed},
			map[LaneID]int64{id: c.before})
		got := ""
		if len(n) == 1 {
			got = notice
		}
		if len(g) == 1 {
			got += gone
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
