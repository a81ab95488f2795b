// Package plainjson writes JSON in which <, > and & stand as they are. encoding/json writes six bytes for each of them,
// for pages that quote it in a script. Bodies, results and journals are never quoted so, their sizes are bounded, and
// models and people read them.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal returns what json.Marshal returns, with <, > and & as they are. A json.RawMessage keeps its texts too.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
