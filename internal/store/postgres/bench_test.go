package postgres

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func BenchmarkLifecycle(b *testing.B) {
	for _, nodes := range []int{1, 2} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			url := pool.Database(b)
			var all []*node
			for range nodes {
				all = append(all, startNode(b, url))
			}
			const callers = 512
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := all[i%nodes].life(b.Context(), fmt.Sprintf("w%d", i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lives/s")
		})
	}
}
