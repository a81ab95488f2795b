// Package quota bounds concurrent work so that no tenant can keep the others out: a tenant may not hold more places
// than are left free. A tenant that takes all it can gets half of the places, the next half of the rest, and a tenant
// without a place gets one as long as there is room. Transport calls it.
package quota

import (
	"sync"

	"lessor"
)

// Limit is a number of places. Its methods may be called by many at once.
type Limit struct {
	mu    sync.Mutex
	most  int64
	taken int64
	by    map[lessor.TenantID]int64
}

// New returns a limit of most places.
func New(most int64) *Limit { return &Limit{most: most, by: map[lessor.TenantID]int64{}} }

// Enter takes n places for a tenant, or for callers that are bound to none (nil), and reports whether it got them.
func (l *Limit) Enter(tenant *lessor.TenantID, n int64) bool { return l.enter(tenant, n, true) }

// EnterSmall is Enter for something that is small beside all there is: it needs room, but is not held to a share.
func (l *Limit) EnterSmall(tenant *lessor.TenantID, n int64) bool { return l.enter(tenant, n, false) }

func (l *Limit) enter(tenant *lessor.TenantID, n int64, shared bool) bool {
	who := key(tenant)
	l.mu.Lock()
	defer l.mu.Unlock()
	own, free := l.by[who], l.most-l.taken-n
	if free < 0 || shared && own > 0 && own+n > free {
		return false
	}
	l.taken += n
	l.by[who] = own + n
	return true
}

// Leave gives n places back.
func (l *Limit) Leave(tenant *lessor.TenantID, n int64) {
	who := key(tenant)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= n
	if l.by[who] -= n; l.by[who] == 0 {
		delete(l.by, who)
	}
}

// Taken is how many places are taken.
func (l *Limit) Taken() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// key makes callers that are bound to no tenant one more tenant.
func key(tenant *lessor.TenantID) (who lessor.TenantID) {
	if tenant != nil {
		who = *tenant
	}
	return who
}
