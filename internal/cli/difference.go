package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/plainjson"
)

// unset are the fields of a definition that a manifest does not set.
var unset = []string{"jobId", "tenantId", "moduleId", "paused", "nextTickAt", "createdAt", "updatedAt"}

// differences says field by field how a definition changes.
func differences(was, is lessor.Definition) (lines []string) {
	before, after := flat(was), flat(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if before[field] != after[field] && !slices.Contains(unset, field) {
			lines = append(lines, field+": "+orNothing(before[field])+" → "+orNothing(after[field]))
		}
	}
	if len(lines) == 0 { // its own bounds were equal to the defaults
		return []string{"circuit or backoff return to the server's defaults"}
	}
	return lines
}

func orNothing(s string) string { return cmp.Or(s, "nothing") }

// flat returns the fields of an object and of the objects in it, by their path. A list is one field.
func flat(v any) map[string]string {
	fields := map[string]string{}
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return fields // v was read from JSON
	}
	var walk func(path string, raw json.RawMessage)
	walk = func(path string, raw json.RawMessage) {
		var members map[string]json.RawMessage
		if bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &members) == nil {
			for name, member := range members {
				walk(strings.TrimPrefix(path+"."+name, "."), member)
			}
			return
		}
		fields[path] = string(raw)
	}
	walk("", raw)
	return fields
}
