package wire

import (
	"encoding/binary"
	"strconv"
	"time"

	"lessor"
)

// Single parameters in binary form; nil is null.

// Int4 is an integer.
func Int4(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// Int8 is a bigint.
func Int8(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// Limit is the limit of a list; the server would refuse a negative one.
func Limit(n int) []byte { return Int8(int64(max(0, n))) }

// Flag is a boolean.
func Flag(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// Instant is an instant in milliseconds.
func Instant(v lessor.Instant) []byte { return Int8(int64(v)) }

// Setting is a duration as the value of a setting: milliseconds as text.
func Setting(d time.Duration) []byte { return strconv.AppendInt(nil, d.Milliseconds(), 10) }

// Text is a text.
func Text(v string) []byte { return append([]byte{}, v...) }

// TextOrNil is null for "".
func TextOrNil(v string) []byte {
	if v == "" {
		return nil
	}
	return Text(v)
}

// ID is a uuid.
func ID(v lessor.UUID) []byte { return v[:] }

// An id is a named uuid.
type id interface{ ~struct{ lessor.UUID } }

// IDOrNil is null for no id.
func IDOrNil[T id](v *T) []byte {
	if v == nil {
		return nil
	}
	return ID(struct{ lessor.UUID }(*v).UUID)
}

// IDs is an array of ids.
func IDs[T id](ids []T) []byte {
	b := newArray(oidUUID, len(ids), len(ids)*len(lessor.UUID{}))
	for _, v := range ids {
		u := struct{ lessor.UUID }(v).UUID
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(u))), u[:]...)
	}
	return b
}

// Int8s is an array of bigints.
func Int8s[T ~int64](vs []T) []byte {
	b := newArray(oidInt8, len(vs), 8*len(vs))
	for _, v := range vs {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
	}
	return b
}

// Texts is an array of texts.
func Texts(vs []string) []byte {
	b := newArray(oidText, len(vs), 16*len(vs))
	for _, v := range vs {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// newArray returns the head of an array of n values, with room for values of so many bytes.
func newArray(oid uint32, n, bytes int) []byte {
	b := make([]byte, arrayHead, arrayHead+n*lengthHead+bytes)
	if n == 0 {
		b = b[:12] // no dimensions
	} else {
		binary.BigEndian.PutUint32(b, 1) // dimensions
		binary.BigEndian.PutUint32(b[12:], uint32(n))
		binary.BigEndian.PutUint32(b[16:], 1) // lower bound
	}
	binary.BigEndian.PutUint32(b[8:], oid)
	return b
}
