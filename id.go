package lessor

import "errors"

// UUID is the form of every id: 16 bytes, written as 8-4-4-4-12 lower-case hexadecimal digits.
type UUID [16]byte

// The ids of the system. Each has its own type so that one cannot be passed for another.
type (
	// JobID names one piece of work.
	JobID struct{ UUID }
	// LeaseID names one grant of a job to one worker.
	LeaseID struct{ UUID }
	// QuestionID names a question. It is the id of the lease under which the job asked.
	QuestionID struct{ UUID }
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
	for i, at := range places {
		high, low := hexDigit(s[at]), hexDigit(s[at+1])
		if high > 15 || low > 15 {
			return UUID{}, errUUID
		}
		u[i] = high<<4 | low
	}
	return u, nil
}

// places are where the digits of each byte stand in the 36-character form.
var places = [16]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// hexDigit returns the value of a hexadecimal digit, and more than 15 for other characters.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// ParseJobID reads the id of a job in its 36-character form.
func ParseJobID(s string) (JobID, error) {
	u, err := ParseUUID(s)
	return JobID{UUID: u}, err
}

// IsZero reports whether u is the nil uuid.
func (u UUID) IsZero() bool { return u == UUID{} }

// String returns the 36-character form.
func (u UUID) String() string { return string(u.Append(make([]byte, 0, 36))) }

// Append appends the 36-character form to b.
func (u UUID) Append(b []byte) []byte {
	const digits = "0123456789abcdef"
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	for i, at := range places {
		text[at], text[at+1] = digits[u[i]>>4], digits[u[i]&15]
	}
	return append(b, text[:]...)
}

// MarshalText writes the 36-character form.
func (u UUID) MarshalText() ([]byte, error) { return u.Append(make([]byte, 0, 36)), nil }

// UnmarshalText reads the 36-character form.
func (u *UUID) UnmarshalText(b []byte) (err error) {
	*u, err = ParseUUID(string(b))
	return err
}
