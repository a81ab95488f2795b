package rules

import (
	"time"

	"lessor"
)

// maxPage is the largest page of a list.
const maxPage = 1000

// CheckLimit refuses a page size outside 1..1000.
func CheckLimit(limit int) error {
	var c check
	c.page(limit)
	return c.err()
}

func (c *check) page(limit int) {
	if limit < 1 || limit > maxPage {
		c.fail("limit", "must be 1 to %d, not %d", maxPage, limit)
	}
}

// CheckList refuses a filter that can never match.
func CheckList(f lessor.JobFilter) error {
	var c check
	c.page(f.Limit)
	if f.State != "" {
		oneOf(&c, "state", new(string(f.State)), lessor.States()...)
	}
	if f.Type != "" {
		c.text("type", &f.Type, 1, maxType, "")
	}
	if f.Tag != "" {
		c.text("tag", &f.Tag, 1, maxTag, "")
	}
	return c.err()
}

// maxPreview bounds the future ticks that are shown.
const maxPreview = 100

// CheckCount refuses a number of ticks outside 1..100.
func CheckCount(count int) error {
	var c check
	if count < 1 || count > maxPreview {
		c.fail("count", "must be 1 to %d, not %d", maxPreview, count)
	}
	return c.err()
}

// CheckTicks refuses a filter that can never match, and returns the tick after which the page begins.
func CheckTicks(f lessor.TickFilter) (after lessor.Instant, err error) {
	var c check
	c.page(f.Limit)
	if f.To != 0 && f.To < f.From {
		c.fail("to", "must not be before from (%s)", f.From)
	}
	if err := c.err(); err != nil || f.Cursor == "" {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339, f.Cursor)
	if err != nil {
		return 0, BadCursor()
	}
	return lessor.At(t), nil
}

// BadCursor refuses a cursor that did not come from this list.
func BadCursor() error {
	var c check
	c.fail("cursor", "is not one that this list gave")
	return c.err()
}
