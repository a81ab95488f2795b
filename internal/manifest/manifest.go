// Package manifest reads files with definitions, in YAML or JSON, and turns them into the body of POST
// /api/kernel/manifests. The CLI calls it; the server never does.
//
// It is strict, because a file is read more often than written. It refuses unknown fields, duplicate keys, anchors,
// aliases, merges, tags, and numbers that are not valid in JSON. Each error names the line and the column, and says
// what to write instead. The numbers of payloads are passed on as they are written. The server decides whether a value
// is allowed; Where finds the place of a field that the server refused.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSize is the largest allowed file in bytes, which is also the server's limit.
const MaxSize = 16 << 20

// Manifest is one document of a file. DryRun and Prune may be changed before Body is called.
type Manifest struct {
	ModuleID string
	JobIDs   []string
	Prune    bool
	DryRun   bool

	file string
	root *value
}

// Read returns the manifests of a file, one per document, in their order. The error has one line per mistake, which
// begins with the name of the file, the line and the column.
func Read(file string, raw []byte) ([]*Manifest, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("%s: is larger than %d MiB", file, MaxSize>>20)
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	c := check{file: file}
	var docs []*value
	if json.Valid(raw) {
		docs = []*value{readJSON(raw)}
	} else {
		docs = c.readYAML(string(raw))
	}
	all := make([]*Manifest, 0, len(docs))
	jobs := map[string]*value{}
	for _, doc := range docs {
		c.shape(doc, manifestShape, "a manifest")
		if doc.kind == object {
			all = append(all, c.manifest(doc, jobs))
		}
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: contains no manifest", file)
	}
	return all, nil
}

// manifest reads the fields of a document that the caller needs. jobs has the jobs of the file so far.
func (c *check) manifest(doc *value, jobs map[string]*value) *Manifest {
	m := &Manifest{
		ModuleID: doc.member("moduleId").text(),
		Prune:    doc.member("prune").isTrue(),
		DryRun:   doc.member("dryRun").isTrue(),
		file:     c.file, root: doc,
	}
	if m.ModuleID == "" {
		c.refuse(doc, "the manifest has no moduleId")
	}
	list := doc.member("jobs")
	if list == nil {
		c.refuse(doc, "the manifest has no jobs: write jobs: [] if there are none")
		return m
	}
	for _, job := range list.items {
		id := job.member("jobId")
		if id.text() == "" {
			c.refuse(job, "the job has no jobId")
			continue
		}
		if first := jobs[id.text()]; first != nil {
			c.refuse(id, "the jobId %q was used before, in line %d", id.text(), first.line)
			continue
		}
		jobs[id.text()] = id
		m.JobIDs = append(m.JobIDs, id.text())
	}
	return m
}

// Body returns the body of POST /api/kernel/manifests.
func (m *Manifest) Body() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, e := range m.root.members {
		if e.name != "prune" && e.name != "dryRun" {
			writeText(&b, e.name)
			b.WriteByte(':')
			e.value.write(&b)
			b.WriteByte(',')
		}
	}
	fmt.Fprintf(&b, `"prune":%t,"dryRun":%t}`, m.Prune, m.DryRun)
	return b.Bytes()
}

// Where returns the place of a field like jobs[3].schedule.cron, or of its nearest parent that is in the file.
func (m *Manifest) Where(field string) string {
	v := m.root
	for step := range strings.SplitSeq(strings.ReplaceAll(field, "[", ".["), ".") {
		next := v.member(step)
		if index, ok := strings.CutPrefix(step, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err == nil && i >= 0 && i < len(v.items) {
				next = v.items[i]
			}
		}
		if next == nil {
			break
		}
		v = next
	}
	return fmt.Sprintf("%s:%d:%d", m.file, v.line, v.column)
}
