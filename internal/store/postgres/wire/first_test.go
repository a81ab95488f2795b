package wire

import "testing"

// TestFirstIsAnsweredAtOnce: SendFirst returns after the answers to its statements, even if one of them must be
// prepared first, which ends a pipeline.
func TestFirstIsAnsweredAtOnce(t *testing.T) {
	known, unknown := SQL("select 1"), SQL("select 2")
	for name, pipelined := range map[string]bool{"one round trip": false, "in parts": true} {
		t.Run(name, func(t *testing.T) {
			conn, err := dialer(t).Dial(t.Context(), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, s := range []*Statement{begin, known} {
				if err := conn.Do(Step{Verb: "prepare", Stmt: s}); err != nil {
					t.Fatal(err)
				}
			}
			if pipelined {
				conn.Pipeline()
				conn.Add(Step{Verb: "put off", Stmt: known})
				conn.Push()
			}
			rows := 0
			count := func(*Row) error { rows++; return nil }
			err = conn.SendFirst(func() {
				conn.Add(Step{Verb: "known", Stmt: known, Each: count})
				conn.Add(Step{Verb: "unknown", Stmt: unknown, Each: count})
			})
			if err != nil || rows != 2 {
				t.Errorf("%d statements were answered, error %v; want 2", rows, err)
			}
		})
	}
}
