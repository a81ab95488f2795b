// Package manifest reads the files in which people write their definitions, in YAML or JSON, and turns them into what
// POST /api/kernel/manifests takes. The CLI calls it; the server never does.
//
// It is strict, because a file is read more often than written: a field that nobody knows, a key that comes twice, an
// anchor, an alias, a merge, a tag or a number that JSON would not know is refused, with its line and column and what to
// write instead. Numbers go through as they are written. Whether a value is allowed is the server's to say; Where finds
// the place of a field that it complains about.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSize is how large a file may be, in bytes: as much as the server takes at once.
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

// Read returns the manifests of a file, one a document, in their order. The error has a line a mistake, each beginning
// with the name of the file, the line and the column.
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
		return nil, fmt.Errorf("%s: holds no manifest", file)
	}
	return all, nil
}

// manifest gathers what the caller wants to know of a document. jobs are those that were seen before.
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

// Where returns the place of a field that the server names, like jobs[3].schedule.cron, or of what is nearest above it.
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
