package rules

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lessor"
)

// FuzzSeal holds that a cursor or the id of a lease, however forged, is refused with a code or read as values that are
// sealed and read as themselves; and that the seal of another store reads other values, or none.
func FuzzSeal(f *testing.F) {
	own, other := NewSeal([32]byte{1}), NewSeal([32]byte{2})
	job := lessor.JobID{UUID: lessor.UUID{1, 15: 2}}
	for _, text := range []string{
		own.Cursor(0, 0), own.Cursor(1<<48-1, 7), other.Cursor(1, 2), own.JobCursor(job), other.JobCursor(job),
		own.LeaseID(1, [10]byte{1}).String(), "01990000-0000-7abc-8abc-0000000a0b0c", "", "=", "AAAAAAAAAAAAAAAAAAAAAB",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, b, err := own.OpenCursor(text); err == nil {
			again, bgain, err := own.OpenCursor(own.Cursor(a, b))
			if err != nil || again != a || bgain != b || a < 0 || a >= 1<<48 || b < 0 || b >= 1<<48 {
				t.Errorf("cursor %q is %d, %d, and comes back as %d, %d (%v)", text, a, b, again, bgain, err)
			}
			if x, y, err := other.OpenCursor(text); err == nil && x == a && y == b {
				t.Errorf("another store reads cursor %q too", text)
			}
		} else if lessor.CodeOf(err) == "" {
			t.Errorf("cursor %q: %v", text, err)
		}
		if id, err := own.OpenJobCursor(text); err == nil {
			if again, err := own.OpenJobCursor(own.JobCursor(id)); err != nil || again != id {
				t.Errorf("cursor %q is job %v, and comes back as %v (%v)", text, id, again, err)
			}
		} else if lessor.CodeOf(err) == "" {
			t.Errorf("cursor %q: %v", text, err)
		}
		if u, err := lessor.ParseUUID(text); err == nil {
			seq := own.Seq(lessor.LeaseID{UUID: u})
			if seq < 0 || seq >= 1<<48 {
				t.Errorf("lease %s is of seq %d", text, seq)
			}
			if id := own.LeaseID(seq, [seqAt]byte(u[:])); own.Seq(id) != seq || u[6]>>4 == 4 && u[8]>>6 == 2 &&
				id.UUID != u {
				t.Errorf("lease %s is of seq %d, and that is %s", text, seq, id)
			}
		}
	})
}

// FuzzDefine holds that a definition with any schedule and zone is refused with a code, or is the same when it is sent
// back as it is shown, and has a next tick that lies ahead. A zone is found by its name only: no path leads anywhere.
func FuzzDefine(f *testing.F) {
	for _, zone := range []string{
		"UTC", "Europe/Berlin", "Local", "", "../../../etc/passwd", "/etc/localtime", "America/St_Johns", "posixrules",
		"Etc/GMT+12", "europe/berlin", "UTC\x00", `..\UTC`,
	} {
		f.Add(`{"type": "cron", "cron": "30 2 * * *"}`, zone)
	}
	f.Add(`{"type": "interval", "seconds": 9223372036854775807}`, "UTC")
	f.Add(`{"type": "interval", "seconds": 3600}`, "Asia/Kathmandu")
	f.Add(`{"type": "cron", "cron": "H H(0-7) L * 1#2"}`, "Pacific/Apia")
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		raw, err := json.Marshal(map[string]any{
			"jobId": "ledger.nightly", "tenantId": tenantName, "handlerId": "ledger.post", "lockKey": "ledger",
			"timezone": zone, "schedule": json.RawMessage(schedule),
		})
		var e lessor.Envelope
		if err != nil || json.Unmarshal(raw, &e) != nil {
			return
		}
		d, err := Define(&e, nil, defineConfig, "")
		if err != nil {
			if lessor.CodeOf(err) == "" {
				t.Fatalf("refused with a fault: %v", err)
			}
			return
		}
		if strings.Contains(d.Zone, "..") || strings.HasPrefix(d.Zone, "/") || d.Zone == "Local" {
			t.Fatalf("the zone %q is taken", d.Zone)
		}
		loc, err := time.LoadLocation(d.Zone)
		if err != nil {
			t.Fatal(err)
		}
		Begin(d, func(d *Definition) Ticker { return TickerOf(d, loc) }, after(0))
		if d.NextTick <= after(0) {
			t.Errorf("the next tick of %s in %s is at %v", schedule, d.Zone, d.NextTick)
		}
		shown, err := json.Marshal(ShowDefinition(d))
		if err != nil {
			t.Fatal(err)
		}
		var sent lessor.Envelope
		if err := json.Unmarshal(shown, &sent); err != nil {
			t.Fatal(err)
		}
		back, err := Define(&sent, nil, defineConfig, "")
		if err == nil {
			err = Inherit(back, &sent, d)
		}
		if err != nil || !back.Same(d) {
			t.Errorf("%s came back as %+v, %v", shown, back, err)
		}
	})
}
