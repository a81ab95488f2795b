package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"lessor"
)

// VersionOf names what is stored of a definition, a tenant or a class. It changes with every setting, and with nothing
// else: not with ticks, leases, queued jobs or spaces in a payload.
func VersionOf(shown any) string {
	switch v := shown.(type) {
	case lessor.Definition:
		v.NextTickAt, v.CreatedAt, v.UpdatedAt, v.Payload = 0, 0, 0, canonical(v.Payload)
		shown = v
	case lessor.Tenant:
		v.Leases, v.Units, v.Queued = 0, 0, 0
		shown = v
	case lessor.Class:
		v.Leases, v.Queued = 0, 0
		shown = v
	}
	b, _ := json.Marshal(shown) // a payload that is JSON can be written again
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Same reports whether two definitions are equal but for their ticks and for spaces in payloads.
func (d *Definition) Same(o *Definition) bool {
	return VersionOf(ShowDefinition(d)) == VersionOf(ShowDefinition(o))
}

// named reports whether a list as in If-Match (RFC 9110) names the current version; * names all that exists. current is
// "" for what does not exist. A proxy that compresses answers marks their versions as weak; they are named too, because
// equal settings have equal versions.
func named(list, current string) bool {
	for version := range strings.SplitSeq(list, ",") {
		version = strings.Trim(strings.TrimPrefix(strings.TrimSpace(version), "W/"), `"`)
		if current != "" && (version == "*" || version == current) {
			return true
		}
	}
	return false
}

// Match refuses a change if the caller named versions that it may replace, and the current one is not among them.
// wanted "" allows all.
func Match(wanted, current string) error {
	if wanted == "" || named(wanted, current) {
		return nil
	}
	now := "it does not exist"
	if current != "" {
		now = fmt.Sprintf("it is now %q", current)
	}
	return &lessor.Error{
		Code:   lessor.CodePreconditionFailed,
		Detail: "it is not the version that If-Match names (" + now + "): read it again, and repeat the change",
	}
}

// Spare refuses a change if the caller named versions that it must not replace, and the current one is among them.
// With * the call only creates.
func Spare(spared, current string) error {
	if !named(spared, current) {
		return nil
	}
	return &lessor.Error{
		Code: lessor.CodePreconditionFailed,
		Detail: fmt.Sprintf(
			"it exists (it is now %q), and If-None-Match says to leave it: "+
				"read it, and change it with If-Match", current),
	}
}
