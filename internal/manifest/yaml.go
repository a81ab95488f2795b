package manifest

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds the nesting of values.
const maxDepth = 1000

const (
	// maxNodes bounds the values of a YAML file to a thousand definitions with fifty fields each.
	maxNodes = 50_000
	// maxKeys bounds the keys of one mapping. The parser needs time in proportion to their square.
	maxKeys = 5_000
)

// nodes returns an upper bound of the values in YAML text, without parsing it: each value needs one of these.
func nodes(raw string) int {
	n := -strings.Count(raw, "\r\n")
	for _, mark := range []string{"\n", "\r", ",", "[", "{", "- ", "? "} {
		n += strings.Count(raw, mark)
	}
	return n
}

// keys returns an upper bound of the keys in one mapping, without parsing the text. A mapping in braces is not counted:
// the parser reads it in time that grows with its length.
func keys(raw string) (most int) {
	type mapping struct{ indent, keys int }
	var open []mapping // around this line, the innermost last
	for line := range strings.FieldsFuncSeq(raw, func(c rune) bool { return c == '\n' || c == '\r' }) {
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		for len(open) > 0 && open[len(open)-1].indent > indent {
			open = open[:len(open)-1]
		}
		if text == "" || text[0] == '#' || strings.HasPrefix(text, "- ") || !strings.Contains(text, ":") {
			continue
		}
		if len(open) == 0 || open[len(open)-1].indent < indent {
			open = append(open, mapping{indent: indent})
		}
		innermost := &open[len(open)-1]
		innermost.keys++
		most = max(most, innermost.keys)
	}
	return most
}

// yamlReader turns the tree of one document into values.
type yamlReader struct {
	*check
	above int // lines of the file before the document
}

// readYAML returns the documents of a file that are not empty.
func (c *check) readYAML(raw string) []*value {
	const divide = "divide it into several files, or write it as JSON"
	switch start := (&value{line: 1, column: 1}); {
	case nodes(raw) > maxNodes:
		c.refuse(start, "this has more than %d values: %s", maxNodes, divide)
		return nil
	case keys(raw) > maxKeys:
		c.refuse(start, "this has more than %d keys in one mapping: %s", maxKeys, divide)
		return nil
	}
	var docs []*value
	for _, part := range split(raw) {
		r := yamlReader{check: c, above: part.above}
		if doc := r.document(part.text); doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs
}

// A part is the text of one document.
type part struct {
	text  string
	above int
}

// split cuts a file at the lines that begin with "---" or are "...", which are always markers. The parser could do it,
// but ignores everything after a document that contains only a comment.
func split(raw string) []part {
	parts := []part{{}}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(raw) {
		rest, marked := strings.CutPrefix(line, "---")
		marked = marked && strings.Trim(rest[:min(1, len(rest))], " \t\r\n") == ""
		if marked || strings.TrimRight(line, " \t\r\n") == "..." {
			parts[len(parts)-1].text = b.String()
			b.Reset()
			parts = append(parts, part{above: n})
			line = "   " + line[3:]
		}
		b.WriteString(line)
		n++
	}
	parts[len(parts)-1].text = b.String()
	return parts
}

// document returns the value of one document, nil if there is none.
func (r *yamlReader) document(raw string) *value {
	file, err := parser.ParseBytes([]byte(raw), 0)
	if err != nil {
		r.syntax(err, raw)
		return nil
	}
	var found *value
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.CommentGroupNode:
		default:
			found = r.value(doc.Body, 0)
		}
	}
	return found
}

// unquoted finds values that YAML does not read as text.
var unquoted = regexp.MustCompile(`:[ \t]+[*@&%]`)

// syntax refuses a document that the parser could not read.
func (r *yamlReader) syntax(err error, raw string) {
	wrong, ok := errors.AsType[yaml.Error](err)
	if !ok || wrong.GetToken() == nil {
		r.refuse(&value{line: r.above + 1, column: 1}, "this is not YAML: %v", err)
		return
	}
	at := wrong.GetToken().Position
	hint := ""
	lines := strings.Split(raw, "\n")
	if at.Line >= 1 && at.Line <= len(lines) && unquoted.MatchString(lines[at.Line-1]) {
		hint = `: put the value in quotes, like "*/5 * * * *"`
	}
	r.refuse(&value{line: r.above + at.Line, column: at.Column}, "%s%s", wrong.GetMessage(), hint)
}

func (r *yamlReader) value(n ast.Node, depth int) *value {
	at := n.GetToken().Position
	v := &value{kind: null, line: r.above + at.Line, column: at.Column}
	if depth > maxDepth {
		r.refuse(v, "this is nested deeper than %d levels", maxDepth)
		return v
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		v.kind, v.scalar = boolean, strings.ToLower(n.Token.Value)
	case *ast.LiteralNode:
		v.kind, v.scalar = text, n.Value.Value
	case *ast.StringNode:
		v.kind, v.scalar = text, n.Value
		if n.Token.Type == token.StringType && isNumber(n.Value) { // larger than the parser's numbers
			v.kind = number
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.kind, v.scalar = number, n.GetToken().Value
		if !isNumber(v.scalar) {
			r.refuse(v, "%s is not a number as JSON writes it: write it in decimal, or in quotes if it is text",
				v.scalar)
		}
	case *ast.SequenceNode:
		v.kind = list
		for _, item := range n.Values {
			v.items = append(v.items, r.value(item, depth+1))
		}
	case *ast.MappingNode:
		v.kind = object
		for _, e := range n.Values {
			r.member(v, e, depth)
		}
	case *ast.MappingValueNode:
		v.kind = object
		r.member(v, n, depth)
	case *ast.AliasNode:
		r.refuse(v, `aliases are refused: write the value out, or in quotes if it is text, like "*/5 * * * *"`)
	case *ast.AnchorNode:
		r.refuse(v, "anchors are refused: write the value out where it is needed")
	case *ast.TagNode:
		r.refuse(v, "tags are refused: write text in quotes, and numbers without")
	default:
		r.refuse(v, "%s is not allowed here", strings.ToLower(n.Type().String()))
	}
	return v
}

func (r *yamlReader) member(v *value, n *ast.MappingValueNode, depth int) {
	at := n.Key.GetToken().Position
	key := &value{kind: text, line: r.above + at.Line, column: at.Column}
	if len(v.members) == 0 && n.Key.GetToken().Position.Line <= v.line-r.above {
		v.line, v.column = key.line, key.column // the parser gives the place of the colon
	}
	switch k := ast.Node(n.Key).(type) {
	case *ast.StringNode:
		key.scalar = k.Value
	case *ast.MergeKeyNode:
		r.refuse(key, "merges are refused: write the fields out")
		return
	default:
		r.refuse(key, "the key %s is not text: put it in quotes", n.Key.GetToken().Value)
		return
	}
	v.members = append(v.members, member{key.scalar, key, r.value(n.Value, depth+1)})
}

// isNumber reports whether JSON would read s as a number.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}
