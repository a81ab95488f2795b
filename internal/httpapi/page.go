package httpapi

import (
	"encoding/base64"
	"slices"
	"strings"
)

// pageOf cuts one page out of a list that is whole in memory, ordered by key. The cursor names the last entry shown, so
// that entries which come or go between two pages shift nothing.
func pageOf[T any](all []T, key func(T) string, limit int, cursor string) (page []T, next *string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, nil, badValue("cursor", "is not one that was given out")
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if cursor != "" {
		all = slices.DeleteFunc(all, func(v T) bool { return key(v) <= string(after) })
	}
	if len(all) <= limit {
		return all, nil, nil
	}
	next = cursorOf(base64.RawURLEncoding.EncodeToString([]byte(key(all[limit-1]))))
	return all[:limit], next, nil
}
