package lessor

import "encoding/json"

// JournalEntry is an entry of a job's journal, which keeps what its attempts have done, in order.
type JournalEntry struct {
	N     int             `json:"n"` // counts from 1 without gaps
	Key   string          `json:"key"`
	Kind  string          `json:"kind"`
	Data  json.RawMessage `json:"data"`
	At    Instant         `json:"at"`
	Fence int64           `json:"fence"` // of the lease under which it was appended
}

// JournalAppend appends entries to the journal of a leased job, all or none. After is the number of the last entry that
// the caller knows: a journal that has fewer has lost some, and refuses (CodeConflict) until they are appended again.
type JournalAppend struct {
	WorkerID *string      `json:"worker_id"`
	After    *int64       `json:"after,omitempty"`
	Entries  []JournalAsk `json:"entries"`
}

// JournalAsk is an entry to append. A job's journal has one entry per key: the same entry again changes nothing.
type JournalAsk struct {
	Key  *string         `json:"key"`
	Kind *string         `json:"kind,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// JournalAnswer says which numbers the entries have. Appending also extends the lease, as a heartbeat does.
type JournalAnswer struct {
	HeartbeatAnswer
	Numbers []int `json:"numbers"`
}
