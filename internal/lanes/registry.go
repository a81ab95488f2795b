package lanes

import "lessor/internal/rules"

// registry finds lanes by their number. The store numbers them from 1 almost without gaps, so they are kept in pages,
// which costs two steps where a map of all lanes costs a cache miss or two for each call.
type registry struct {
	pages []*[pageSize]*lane
	far   map[rules.LaneID]*lane // numbers that would make pages long
}

const (
	pageSize = 512
	maxPages = 1 << 16 // 33 million lanes
)

func (r *registry) find(id rules.LaneID) *lane {
	if page := uint64(id) / pageSize; page < uint64(len(r.pages)) {
		if r.pages[page] == nil {
			return nil
		}
		return r.pages[page][uint64(id)%pageSize]
	}
	return r.far[id]
}

func (r *registry) put(id rules.LaneID, l *lane) {
	page := uint64(id) / pageSize
	if page >= maxPages {
		if r.far == nil {
			r.far = map[rules.LaneID]*lane{}
		}
		r.far[id] = l
		return
	}
	for uint64(len(r.pages)) <= page {
		r.pages = append(r.pages, nil)
	}
	if r.pages[page] == nil {
		r.pages[page] = new([pageSize]*lane)
	}
	r.pages[page][uint64(id)%pageSize] = l
}

// drop forgets a lane that is there.
func (r *registry) drop(id rules.LaneID) {
	if page := uint64(id) / pageSize; page < uint64(len(r.pages)) {
		r.pages[page][uint64(id)%pageSize] = nil
		return
	}
	delete(r.far, id)
}
