package lanes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lessor"
	"lessor/internal/rules"
)

// peers are nodes that grant by turns and follow each other: a node reads the steps of the others stream by stream.
type peers struct {
	nodes   []*Index
	streams [][]peerStep // of each node
	read    [][]int      // how many steps each node has applied of each stream
	seq     int64
}

type peerStep struct {
	turn    rules.Turn
	granted bool // else it was queued
}

func newPeers(n int) *peers {
	p := &peers{streams: make([][]peerStep, n)}
	for range n {
		p.nodes = append(p.nodes, New(nil))
		p.read = append(p.read, make([]int, n))
	}
	return p
}

// submit queues a job at a node.
func (p *peers) submit(node int, lane rules.LaneID) {
	p.seq++
	t := rules.Turn{Lane: lane, Seq: p.seq}
	p.nodes[node].Enqueue(t)
	p.streams[node] = append(p.streams[node], peerStep{turn: t})
}

// grant takes the next job at a node, and ends its lease at once.
func (p *peers) grant(node int) rules.Turn {
	p.follow(node)
	x := p.nodes[node]
	pick, _ := x.Next(&Filter{Usable: 100})
	t := x.Take(pick)
	x.Free(t.Lane)
	p.streams[node] = append(p.streams[node], peerStep{turn: t, granted: true})
	return t
}

// follow applies what a node has not read, each stream as far as the jobs that it grants are queued.
func (p *peers) follow(node int) {
	x := p.nodes[node]
	x.BeginBatch()
	defer x.EndBatch()
	for moved := true; moved; {
		moved = false
		for s, steps := range p.streams {
			if s == node {
				continue
			}
			for _, st := range steps[p.read[node][s]:] {
				if !st.granted {
					x.Enqueue(st.turn)
				} else if _, queued := x.TakeSeq(st.turn.Lane, st.turn.Seq); queued {
					x.Free(st.turn.Lane)
				} else {
					break
				}
				p.read[node][s]++
				moved = true
			}
		}
	}
}

// TestEqualTenantsShareAnyWindowOfSeveralNodes is P12 with nodes that read each other's grants late, and not in the
// order in which they were made.
func TestEqualTenantsShareAnyWindowOfSeveralNodes(t *testing.T) {
	for _, nodes := range []int{2, 3, 5} {
		for _, k := range []int{2, 4, 7, 30} {
			t.Run(fmt.Sprintf("%d nodes, %d tenants", nodes, k), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(nodes), uint64(k)))
				p := newPeers(nodes)
				for tenant := range k {
					for class := range 2 {
						l := of(tenant)
						l.Class = fmt.Sprint(class)
						lane := rules.LaneID(1 + 2*tenant + class)
						for _, x := range p.nodes {
							x.Add(lane, l)
						}
						for range 1 + r.IntN(5) {
							p.submit(r.IntN(nodes), lane)
						}
					}
				}
				var tenants []lessor.TenantID
				var classes []rules.LaneID
				for len(tenants) < 3000 {
					node, batch := r.IntN(nodes), 1+r.IntN(4*k)
					for range batch { // other jobs take their places, from any node
						granted := p.grant(node)
						tenants = append(tenants, p.nodes[node].Lane(granted.Lane).Tenant)
						classes = append(classes, granted.Lane)
						p.submit(r.IntN(nodes), granted.Lane)
					}
				}
				checkWindows(t, tenants, k)
				checkWindows(t, classes, 2*k)
			})
		}
	}
}

// checkWindows checks that each of k members gets 1/k of any 1000 grants, ± 10 % and at least ± 1.
func checkWindows[T comparable](t *testing.T, whose []T, k int) {
	t.Helper()
	slack := max(1, 1000/k/10)
	window := map[T]int{}
	for i, w := range whose {
		if window[w]++; i < 999 {
			continue
		}
		for member, n := range window {
			if len(window) != k || n < 1000/k-slack || n > (1000+k-1)/k+slack {
				t.Fatalf("%v got %d of the 1000 grants up to %d, the share of each of %d is %d",
					member, n, i, k, 1000/k)
			}
		}
		window[whose[i-999]]--
	}
}
