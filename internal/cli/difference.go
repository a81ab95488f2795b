package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lessor"
)

// envelopeDefaults are what a definition has that does not say otherwise. Circuit and backoff are not among them: theirs are the
// server's own.
const envelopeDefaults = `{"maxAttempts":5,"timeoutSeconds":300,"fairnessClass":"default","isEnabled":true,"priority":"normal","requestedUnits":1,
	"timezone":"UTC","overlap":"skip","catchUp":"latest","catchUpWindowSeconds":3600,"jitterSeconds":0}`

// differences tells field by field how a stored definition changes when it is replaced.
func differences(stored lessor.Definition, asked lessor.Envelope) (lines []string) {
	asked.TenantID = nil // it cannot change
	was, is, said := flat(stored), flat(json.RawMessage(envelopeDefaults)), flat(asked)
	maps.Copy(is, said)
	all := maps.Clone(is)
	for field := range was {
		if root, _, _ := strings.Cut(field, "."); root == "schedule" || root == "payload" {
			all[field] = ""
		}
	}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if was[field] != is[field] {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", field, orNothing(was[field]), orNothing(is[field])))
		}
	}
	if len(lines) == 0 {
		return []string{"circuit or backoff return to the server's defaults"}
	}
	return lines
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// flat returns the fields of an object, and of the objects in it, by their path; what v says of a list is one field.
func flat(v any) map[string]string {
	fields := map[string]string{}
	raw, err := json.Marshal(v)
	if err != nil {
		return fields // what was read as JSON can be written
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
