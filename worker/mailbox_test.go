package worker_test

import (
	"strings"
	"testing"

	"lessor/worker"
)

func TestJSONBodiesTravelTyped(t *testing.T) {
	type order struct {
		Item string `json:"item"`
	}
	box := worker.NewMemory(worker.MemoryConfig{})
	id, err := worker.SendJSON(t.Context(), box, order{"tea"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := receive(t, box, 1, 0, 0)[0]
	if got, err := worker.DecodeBody[order](m); err != nil || got.Item != "tea" {
		t.Errorf("received %+v, err %v", got, err)
	}
	if _, err := worker.DecodeBody[int](m); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("a body of another type: err %v, want one that names the message", err)
	}
	if _, err := worker.SendJSON(t.Context(), box, func() {}, nil); err == nil {
		t.Error("sent a function as JSON")
	}
}
