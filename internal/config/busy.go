package config

import (
	"errors"
	"strconv"
)

// Busy says where the busy rating comes from. The zero value samples the host.
type Busy struct {
	Set    bool
	Rating int // 0..10, if Set
}

var errBusy = errors.New("is neither host nor a rating 0 to 10")

// ParseBusy reads host, or a rating; whether it is in range is the table's to say.
func ParseBusy(s string) (Busy, error) {
	if s == "host" {
		return Busy{}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return Busy{}, errBusy
	}
	return Busy{Set: true, Rating: n}, nil
}

// String writes what ParseBusy reads.
func (b Busy) String() string {
	if !b.Set {
		return "host"
	}
	return strconv.Itoa(b.Rating)
}
