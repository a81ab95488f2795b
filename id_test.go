package lessor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lessor"
)

func TestUUIDIsReadInOneFormOnly(t *testing.T) {
	const text = "0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5f6"
	want := lessor.UUID{0x01, 0x94, 0xe4, 0xc8, 0x7b, 0x1a, 0x7c, 0x3d, 0x8e, 0x4f, 0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6}
	for _, s := range []string{text, strings.ToUpper(text)} {
		if u, err := lessor.ParseUUID(s); err != nil || u != want {
			t.Errorf("%q is read as %v (error %v), want %v", s, u, err, want)
		}
		if id, err := lessor.ParseJobID(s); err != nil || id.UUID != want {
			t.Errorf("as a job's id, %q is read as %v (error %v), want %v", s, id, err, want)
		}
	}
	if got := want.String(); got != text {
		t.Errorf("it is written %q, want %q", got, text)
	}
	for _, s := range []string{
		"", text[:35], text + "0", "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""),
		strings.ReplaceAll(text, "-", "0"),
		strings.Replace(text, "a", "g", 1), " " + text[1:], strings.Replace(text, "-7c3d-", "7-c3d-", 1),
		strings.Replace(text, "0194", "01é", 1),
	} {
		if u, err := lessor.ParseUUID(s); err == nil || !u.IsZero() {
			t.Errorf("%q is read as %v (error %v), want it refused", s, u, err)
		}
		if id, err := lessor.ParseJobID(s); err == nil {
			t.Errorf("as a job's id, %q is read as %v, want it refused", s, id)
		}
	}
}

func TestOnlyTheNilUUIDIsZero(t *testing.T) {
	for u, want := range map[lessor.UUID]bool{{}: true, {15: 1}: false, {0: 1}: false} {
		if got := u.IsZero(); got != want {
			t.Errorf("%v is zero: %v, want %v", u, got, want)
		}
	}
}

func TestIDsTravelAsStrings(t *testing.T) {
	type ids struct {
		Job    lessor.JobID             `json:"job"`
		Lease  *lessor.LeaseID          `json:"lease"`
		Tenant map[lessor.TenantID]bool `json:"tenant"`
	}
	const text = `{"job":"01000000-0000-0000-0000-000000000002","lease":null,` +
		`"tenant":{"00000000-0000-0000-0000-000000000000":true}}`
	var v ids
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("ids cannot be read: %v", err)
	}
	if want := (lessor.JobID{UUID: lessor.UUID{0: 1, 15: 2}}); v.Job != want {
		t.Errorf("the job is %v, want %v", v.Job, want)
	}
	raw, err := json.Marshal(v)
	if err != nil || string(raw) != text {
		t.Errorf("ids are written %s (error %v), want %s", raw, err, text)
	}
	if err := json.Unmarshal([]byte(`{"job":"42"}`), &v); err == nil {
		t.Error("42 is accepted as a job id")
	}
}

// FuzzParseUUID holds that what is read is written the same, but for capitals, and that nothing else of 36 characters
// is.
func FuzzParseUUID(f *testing.F) {
	f.Add("0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5f6")
	f.Add("0194E4C8-7B1A-7C3D-8E4F-A1B2C3D4E5F6")
	f.Add("0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5fg")
	f.Add("{0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5}")
	f.Add("00000000-0000-0000-0000-00000000000é")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := lessor.ParseUUID(s)
		if err != nil {
			if !u.IsZero() {
				t.Fatalf("%q is refused and still gives %v", s, u)
			}
			return
		}
		if u.String() != strings.ToLower(s) {
			t.Fatalf("%q is read and written as %q", s, u)
		}
		var again lessor.UUID
		if err := again.UnmarshalText([]byte(u.String())); err != nil || again != u {
			t.Fatalf("%v is read back as %v (error %v)", u, again, err)
		}
	})
}
