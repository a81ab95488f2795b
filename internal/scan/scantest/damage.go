// Package scantest damages JSON, for tests that compare two decoders.
package scantest

import (
	"slices"

	"pgregory.net/rapid"
)

// Damage returns a copy of b, which is not empty, with a few random mistakes: other bytes, bytes that are missing, and
// pieces that are there twice.
func Damage(t *rapid.T, b []byte) []byte {
	b = slices.Clone(b)
	for range rapid.IntRange(1, 3).Draw(t, "damages") {
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			b[at] = rapid.SampledFrom([]byte("\"\\{}[],:0-.eEtfn A_\n\x00\xff")).Draw(t, "byte")
		case 1:
			b = slices.Delete(b, at, min(at+rapid.IntRange(1, 9).Draw(t, "cut"), len(b)))
			b = append(b, ' ') // never empty
		case 2:
			piece := slices.Clone(b[at:min(at+rapid.IntRange(1, 40).Draw(t, "copied"), len(b))])
			b = slices.Insert(b, at, piece...)
		}
	}
	return b
}
