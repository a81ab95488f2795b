package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The limits of a schema. The library's time grows with the square of the subschemas, its stack with the depth.
const (
	maxNodes = 2000
	maxDepth = 64
)

// The keywords of 2020-12 that contain subschemas. "definitions" and "dependencies" come from older drafts; the library
// still follows them.
var (
	single = []string{
		"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	lists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	named = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// A node is one subschema, reduced to what costs time.
type node struct {
	kinds   []string // its "type", nil if any
	compare int      // values in "const" and "enum"
	pattern int      // instructions of its patterns
	unique  bool

	same   []*node          // asked about the same value
	fields map[string]*node // about one member
	others []*node          // about members that are not in fields
	every  []*node          // about every member
	names  []*node          // about the names of members
	prefix []*node          // about one item each
	each   []*node          // about every item
}

// reader makes nodes from a schema.
type reader struct {
	at      map[string]*node // by JSON pointer
	anchors map[string]*node
	links   []link
}

// A link is a reference that is not followed yet.
type link struct {
	from *node
	ref  string
}

// read makes nodes from a schema. It refuses a schema that is too large or whose references leave it; the library finds
// other mistakes.
func read(doc any) (*node, error) {
	if n, ok := hugeNumber(doc); ok {
		return nil, fmt.Errorf("holds a number that is too large: %s", cut(n.String(), 40))
	}
	r := reader{at: map[string]*node{}, anchors: map[string]*node{}}
	root, err := r.node(doc, "", 0)
	if err != nil {
		return nil, err
	}
	for _, l := range r.links {
		target, err := r.follow(l.ref)
		if err != nil {
			return nil, err
		}
		l.from.same = append(l.from.same, target)
	}
	return root, nil
}

func (r *reader) node(value any, pointer string, depth int) (*node, error) {
	n := &node{}
	r.at[pointer] = n
	switch {
	case len(r.at) > maxNodes:
		return nil, fmt.Errorf("holds more than %d subschemas", maxNodes)
	case depth > maxDepth:
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	obj, ok := value.(map[string]any)
	if !ok {
		return n, nil
	}
	if err := r.identity(n, obj, pointer); err != nil {
		return nil, err
	}
	if err := n.measure(obj); err != nil {
		return nil, fmt.Errorf("has a wrong pattern at #%s: %w", pointer, err)
	}
	for _, key := range single {
		if sub, ok := obj[key]; ok {
			if err := r.add(n, key, "", sub, pointer+"/"+key, depth); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range lists {
		list, _ := obj[key].([]any)
		for i, sub := range list {
			if err := r.add(n, key, "", sub, pointer+"/"+key+"/"+strconv.Itoa(i), depth); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range named {
		members, _ := obj[key].(map[string]any)
		for name, sub := range members {
			if err := r.add(n, key, name, sub, pointer+"/"+key+"/"+escape.Replace(name), depth); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// identity notes the names of a subschema and its references to others.
func (r *reader) identity(n *node, obj map[string]any, pointer string) error {
	if s, ok := obj["$schema"].(string); ok && strings.TrimSuffix(s, "#") != draft {
		return fmt.Errorf("must be of the draft %s", draft)
	}
	if _, ok := obj["$id"]; ok && pointer != "" {
		return fmt.Errorf("has an $id at #%s: only the whole schema may have one, since references stay inside it",
			pointer)
	}
	if _, ok := obj["$recursiveRef"]; ok {
		return fmt.Errorf("has a $recursiveRef at #%s, which is of an older draft: use $dynamicRef", pointer)
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := obj[key].(string); ok {
			r.links = append(r.links, link{n, ref})
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := obj[key].(string); ok {
			r.anchors[name] = n
		}
	}
	return nil
}

// follow returns the target of a reference. There is one document without an $id inside it, so a dynamic reference has
// the same target as a plain one.
func (r *reader) follow(ref string) (*node, error) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("has a reference that leaves the document, which is refused: %q", cut(ref, 100))
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, fmt.Errorf("has a reference that cannot be read: %q", cut(ref, 100))
	}
	target := r.anchors[fragment]
	if fragment == "" || fragment[0] == '/' {
		target = r.at[fragment]
	}
	if target == nil {
		return nil, fmt.Errorf("has a reference that leads to no schema: %q", cut(ref, 100))
	}
	return target, nil
}

// escape escapes a name for a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// add reads the subschema under key, and under a name if key has named ones.
func (r *reader) add(n *node, key, name string, value any, pointer string, depth int) error {
	if _, isList := value.([]any); isList && key == "dependencies" {
		return nil // a list of names
	}
	sub, err := r.node(value, pointer, depth+1)
	if err != nil {
		return err
	}
	switch key {
	case "$defs", "definitions", "contentSchema": // asked when they are referred to, or never
	case "properties":
		if n.fields == nil {
			n.fields = map[string]*node{}
		}
		n.fields[name] = sub
	case "additionalProperties":
		n.others = append(n.others, sub)
	case "patternProperties", "unevaluatedProperties":
		n.every = append(n.every, sub)
	case "propertyNames":
		n.names = append(n.names, sub)
	case "prefixItems":
		n.prefix = append(n.prefix, sub)
	case "items", "contains", "unevaluatedItems":
		n.each = append(n.each, sub)
	default:
		n.same = append(n.same, sub)
	}
	return nil
}

// measure notes what the keywords of one subschema cost.
func (n *node) measure(obj map[string]any) error {
	switch kinds := obj["type"].(type) {
	case string:
		n.kinds = []string{kinds}
	case []any:
		for _, k := range kinds {
			name, _ := k.(string)
			n.kinds = append(n.kinds, name)
		}
	}
	if slices.Contains(n.kinds, "integer") {
		n.kinds = append(n.kinds, "number")
	}
	for _, key := range []string{"const", "enum"} {
		if value, ok := obj[key]; ok {
			n.compare += size(value)
		}
	}
	n.unique, _ = obj["uniqueItems"].(bool)
	var patterns []string
	if text, ok := obj["pattern"].(string); ok {
		patterns = append(patterns, text)
	}
	members, _ := obj["patternProperties"].(map[string]any)
	for _, text := range slices.AppendSeq(patterns, maps.Keys(members)) {
		k, err := patternSize(text)
		if err != nil {
			return err
		}
		n.pattern += k
	}
	return nil
}
