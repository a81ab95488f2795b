package main

import "fmt"

// side measures one side of a comparison once.
type side[T any] func() (T, error)

// alternate measures each side once per round, so that all see the same machine, and returns the figures of each. A nil
// side has none.
func alternate[T any](b *bench, name string, rounds int, sides ...side[T]) ([][]T, error) {
	all := make([][]T, len(sides))
	for r := range rounds {
		b.note("%s: round %d of %d", name, r+1, rounds)
		for i, measure := range sides {
			if measure == nil {
				continue
			}
			figure, err := measure()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], figure)
		}
	}
	return all, nil
}

// ofRiver is the side of River; nil without peers.
func ofRiver[T any](b *bench, measure side[T]) side[T] {
	if !b.peers {
		return nil
	}
	return func() (T, error) {
		figure, err := measure()
		if err != nil {
			return figure, fmt.Errorf("river: %w", err)
		}
		return figure, nil
	}
}
