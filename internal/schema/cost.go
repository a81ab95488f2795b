package schema

import (
	"encoding/json"
	"slices"
)

// The limits of a check. A step takes about a microsecond; the stack holds the library's frames too.
const (
	maxSteps = 500_000
	maxStack = 1000
)

// affordable reports whether the library checks value against n in bounded time. It visits what the library would
// visit, in every branch, and counts.
func affordable(n *node, value any) bool {
	b := budget{left: maxSteps}
	b.visit(n, value, 0)
	return b.left >= 0
}

// budget counts down the steps that are left; below zero the count stops.
type budget struct{ left int }

func (b *budget) visit(n *node, value any, depth int) {
	b.left -= 1 + n.compare
	if depth > maxStack {
		b.left = -1
	}
	if b.left < 0 || n.kinds != nil && !slices.Contains(n.kinds, kindOf(value)) {
		return
	}
	switch v := value.(type) {
	case string:
		b.left -= n.pattern * len(v) / 100 // a step of RE2 takes about 10 ns
	case map[string]any:
		b.members(n, v, depth)
	case []any:
		b.items(n, v, depth)
	}
	b.all(n.same, value, depth)
}

func (b *budget) all(nodes []*node, value any, depth int) {
	for _, sub := range nodes {
		if b.left < 0 {
			return
		}
		b.visit(sub, value, depth+1)
	}
}

func (b *budget) members(n *node, obj map[string]any, depth int) {
	b.left -= len(obj)
	for name, value := range obj {
		b.left -= n.pattern * len(name) / 100
		if sub := n.fields[name]; sub != nil {
			b.visit(sub, value, depth+1)
		} else {
			b.all(n.others, value, depth)
		}
		b.all(n.every, value, depth)
		b.all(n.names, name, depth)
	}
}

func (b *budget) items(n *node, list []any, depth int) {
	b.left -= len(list)
	if n.unique {
		b.left -= 20 * size(list) // the library compares every pair of up to 20 items
	}
	for i, value := range list {
		if i < len(n.prefix) {
			b.visit(n.prefix[i], value, depth+1)
		}
		b.all(n.each, value, depth)
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// size counts the values in value.
func size(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for _, item := range v {
			n += size(item)
		}
	}
	return n
}
