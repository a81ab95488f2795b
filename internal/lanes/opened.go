package lanes

import "lessor"

// Opened calls fn, if it is not nil, with each tenant and type of which a job may be granted now and might not when
// Opened was called last: one was queued, or whatever held it back is gone. Where jobs could be granted before, one
// more is no news: a request that was denied those is denied it too, unless capacity or what its worker holds has
// changed. A pair may come more than once.
func (x *Index) Opened(fn func(tenant lessor.TenantID, typ string)) {
	for _, st := range x.opened {
		st.noted = false
		if fn != nil && x.stands.in(st.num) {
			fn(st.share.tenant.id, st.shape.typ)
		}
	}
	clear(x.opened)
	x.opened = x.opened[:0]
}
