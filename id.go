package lessor

import (
	"encoding/hex"
	"errors"
)

// UUID is the form of every id: 16 bytes, written as 8-4-4-4-12 lower-case hexadecimal digits.
type UUID [16]byte

// The ids of the system. Each has its own type so that one cannot be passed for another.
type (
	// JobID names one piece of work.
	JobID struct{ UUID }
	// LeaseID names one grant of a job to one worker.
	LeaseID struct{ UUID }
	// TenantID names who the work is for. The zero value is the tenant of jobs without one.
	TenantID struct{ UUID }
	// TokenID names an access token; it is not the token.
	TokenID struct{ UUID }
	// AlertID names an alert.
	AlertID struct{ UUID }
	// AuditID names an entry of the audit.
	AuditID struct{ UUID }
)

var errUUID = errors.New("not a uuid of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")

// ParseUUID reads the 36-character form. Nothing else is accepted: no braces, no urn prefix, no missing hyphens.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, errUUID
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, errUUID
	}
	return u, nil
}

// ParseJobID reads the id of a job in its 36-character form.
func ParseJobID(s string) (JobID, error) {
	u, err := ParseUUID(s)
	return JobID{UUID: u}, err
}

// IsZero reports whether u is the nil uuid.
func (u UUID) IsZero() bool { return u == UUID{} }

// String returns the 36-character form.
func (u UUID) String() string { return string(u.appendTo(make([]byte, 0, 36))) }

func (u UUID) appendTo(b []byte) []byte {
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// MarshalText writes the 36-character form.
func (u UUID) MarshalText() ([]byte, error) { return u.appendTo(make([]byte, 0, 36)), nil }

// UnmarshalText reads the 36-character form.
func (u *UUID) UnmarshalText(b []byte) (err error) {
	*u, err = ParseUUID(string(b))
	return err
}
