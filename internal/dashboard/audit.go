package dashboard

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"lessor"
)

// auditPage lists who changed what.
type auditPage struct {
	Actor, Object string
	Entries       []auditRow
	Next          string
}

// auditRow is one entry and its changed fields: in Changes if they are few, otherwise in More, which the page folds.
type auditRow struct {
	lessor.Audited
	Changes, More []change
}

// change is one field of an object before and after, as JSON; "" = the field was missing.
type change struct {
	Field, Before, After string
}

// changesShown is the number of fields that a row shows at once: more than people change by hand, and fewer than a
// definition has.
const changesShown = 6

func (v *visit) audit() (view, error) {
	q := v.r.URL.Query()
	p := auditPage{Actor: strings.TrimSpace(q.Get("actor")), Object: strings.TrimSpace(q.Get("object"))}
	list, next, err := v.scheduler.Audit(v.r.Context(), lessor.AuditFilter{
		Actor: p.Actor, Object: p.Object, Limit: pageSize, Cursor: q.Get("cursor"),
	})
	p.Next = v.next(next)
	for _, entry := range list {
		row := auditRow{Audited: entry, Changes: changes(entry.Before, entry.After)}
		if len(row.Changes) > changesShown {
			row.Changes, row.More = nil, row.Changes
		}
		p.Entries = append(p.Entries, row)
	}
	return view{"Audit", "audit", p}, err
}

// changes compares two objects field by field. A value that is not an object counts as one field without a name.
func changes(before, after json.RawMessage) []change {
	was, is := fields(before), fields(after)
	all := maps.Clone(is)
	maps.Copy(all, was)
	var list []change
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(was[name], is[name]) {
			list = append(list, change{name, shorten(was[name]), shorten(is[name])})
		}
	}
	return list
}

// maxChange bounds the text of one value, in bytes; a definition's payload may have 256 KiB.
const maxChange = 4 << 10

func shorten(raw json.RawMessage) string {
	if len(raw) <= maxChange {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:maxChange]), "") + "…"
}

func fields(raw json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	switch err := json.Unmarshal(raw, &all); {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return map[string]json.RawMessage{}
	case err != nil:
		return map[string]json.RawMessage{"": raw}
	}
	return all
}
