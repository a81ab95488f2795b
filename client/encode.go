package client

import (
	"strconv"

	"lessor"
	"lessor/internal/plainjson"
	"lessor/internal/scan"
)

// encode writes a body as JSON. encoding/json checks and copies a value that is JSON already byte by byte, which made
// up most of an append's cost, so entries of journals are written here: TestAppendsAreWrittenAsEncodingJSONWritesThem.
func encode(body any) ([]byte, error) {
	if a, ok := body.(lessor.JournalAppend); ok {
		if b, ok := encodeAppend(&a); ok {
			return b, nil
		}
	}
	return plainjson.Marshal(body)
}

// encodeAppend gives up on texts with escapes, on missing fields, and on data that is no JSON.
func encodeAppend(a *lessor.JournalAppend) (b []byte, ok bool) {
	size := 64
	for i := range a.Entries {
		e := &a.Entries[i]
		if !plain(e.Key) || e.Kind != nil && !plain(e.Kind) || len(e.Data) > 0 && !scan.Valid(e.Data) {
			return nil, false
		}
		size += 64 + len(*e.Key) + len(e.Data)
	}
	if !plain(a.WorkerID) || a.Entries == nil {
		return nil, false
	}
	b = append(make([]byte, 0, size+len(*a.WorkerID)), `{"worker_id":"`...)
	b = append(append(b, *a.WorkerID...), '"')
	if a.After != nil {
		b = strconv.AppendInt(append(b, `,"after":`...), *a.After, 10)
	}
	b = append(b, `,"entries":[`...)
	for i := range a.Entries {
		e := &a.Entries[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"key":"`...), *e.Key...), '"')
		if e.Kind != nil {
			b = append(append(append(b, `,"kind":"`...), *e.Kind...), '"')
		}
		if len(e.Data) > 0 {
			b = append(append(b, `,"data":`...), e.Data...)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...), true
}

func plain(text *string) bool { return text != nil && scan.IsPlain(*text) }
