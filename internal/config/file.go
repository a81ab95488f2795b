package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile and maxLines bound the file, which has about sixty keys.
const (
	maxFile  = 1 << 20
	maxLines = 5000 // lines and items of lists; the parser needs time in proportion to their square
)

// setting is one value of a source, as text.
type setting struct {
	key    Key
	text   string
	source string
}

// readFile returns the settings of the YAML file at path.
func readFile(path string) ([]setting, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("configuration %s is larger than 1 MiB", path)
	}
	return parseFile(path, data)
}

// quoted are the parts of the file that the parser quotes in its errors, which may be secrets. The parser also quotes
// the brackets and commas that it expects.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"|'(\\[^']+|[^]['{},\t])'`)

// parseFile reads a mapping of the table's keys and nothing else. It refuses unknown keys, duplicates, anchors,
// aliases, merges, tags and second documents, because each would surprise the people who read the file.
func parseFile(path string, data []byte) ([]setting, error) {
	items := 0
	for _, mark := range []string{"\n", ",", "[", "{", "- ", "? "} {
		if items += bytes.Count(data, []byte(mark)); items > maxLines {
			return nil, fmt.Errorf("%s: has more than %d lines and items", path, maxLines)
		}
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, quoted.ReplaceAllString(yaml.FormatError(err, false, false), "…"))
	}
	if len(file.Docs) > 1 {
		return nil, fmt.Errorf("%s: has %d documents, one is allowed", path, len(file.Docs))
	}
	r := fileReader{path: path}
	for _, doc := range file.Docs {
		r.mapping("", doc.Body)
	}
	return r.settings, errors.Join(r.errs...)
}

// fileReader walks a file and collects settings and errors.
type fileReader struct {
	path     string
	settings []setting
	errs     []error
}

func (r *fileReader) refuse(n ast.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", r.at(n), fmt.Sprintf(format, args...)))
}

func (r *fileReader) at(n ast.Node) string {
	return fmt.Sprintf("file %s line %d", r.path, n.GetToken().Position.Line)
}

// mapping reads the keys of one section; section is "" or ends with a dot.
func (r *fileReader) mapping(section string, n ast.Node) {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		// An empty section: all its keys may be commented out.
	case *ast.MappingNode:
		for _, v := range n.Values {
			r.entry(section, v)
		}
	case *ast.MappingValueNode:
		r.entry(section, n)
	default:
		r.refuse(n, "%s is not a section of keys (%s)", orWhole(section), kindOf(n))
	}
}

func (r *fileReader) entry(section string, n *ast.MappingValueNode) {
	var node ast.Node = n.Key
	word, ok := node.(*ast.StringNode)
	if !ok {
		r.refuse(n, "%s has a key that is not a word (%s)", orWhole(section), kindOf(n.Key))
		return
	}
	name := section + word.Value
	keys := Keys()
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 {
		r.leaf(keys[i], n.Value)
		return
	}
	if slices.ContainsFunc(keys, func(k Key) bool { return strings.HasPrefix(k.Name, name+".") }) {
		r.mapping(name+".", n.Value)
		return
	}
	if n.Start == word.Token { // it may be the end of a secret that contains a comma
		r.refuse(n, "%s has an entry without a colon: a value with a comma needs quotes", orWhole(section))
		return
	}
	r.refuse(n.Key, "unknown key %s: allowed are %s", name, strings.Join(wordsIn(section), ", "))
}

func (r *fileReader) leaf(k Key, n ast.Node) {
	text, ok := scalar(n)
	switch list := n.(type) {
	case *ast.NullNode:
		return // the same as a missing key
	case *ast.SequenceNode:
		ok = true
		parts := make([]string, len(list.Values))
		for i, v := range list.Values {
			item, isText := scalar(v)
			ok = ok && isText && !strings.Contains(item, ",")
			parts[i] = item
		}
		text = strings.Join(parts, ",")
	}
	if !ok {
		r.refuse(n, "%s is not a plain value or list (%s): allowed is %s", k.Name, kindOf(n), k.Allowed)
		return
	}
	r.settings = append(r.settings, setting{key: k, text: text, source: r.at(n)})
}

// scalar returns the text of a plain value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func kindOf(n ast.Node) string { return "it is of the kind " + strings.ToLower(n.Type().String()) }

func orWhole(section string) string {
	if section == "" {
		return "the file"
	}
	return strings.TrimSuffix(section, ".")
}

// wordsIn lists the keys of a section.
func wordsIn(section string) []string {
	var words []string
	for _, k := range Keys() {
		if rest, ok := strings.CutPrefix(k.Name, section); ok {
			word, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}
