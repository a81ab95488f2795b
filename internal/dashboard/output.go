package dashboard

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"lessor"
)

// maxOutput bounds the output of each stream on a page, in bytes: its end.
const maxOutput = 32 << 10

// outputPart is the end of one stream of a job's last attempt: of its last lease that printed, or of the lease that was
// asked for.
type outputPart struct {
	Stream  string
	Attempt int
	Spans   []coloured
	Whole   bool // it is all that the attempt printed
}

// coloured is text in one colour.
type coloured struct{ Class, Text string }

// readOutput reads the end of what the last attempt printed, or of what was printed under the lease whose fence is
// asked for. With the parameter colours=off it is shown without them.
func (p *jobPage) readOutput(ctx context.Context, v *visit) error {
	asked := v.r.URL.Query()
	p.Plain = asked.Get("colours") == "off"
	p.Fence, _ = strconv.ParseInt(asked.Get("fence"), 10, 64) // what is no number asks for the last attempt
	for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
		q := lessor.OutputQuery{Stream: stream, Fence: p.Fence, Offset: -maxOutput}
		out, err := v.scheduler.Output(ctx, v.caller, p.Job.ID, q, nil)
		if err != nil {
			return err
		}
		p.Printers = slices.Clone(out.Leases)
		earlier := slices.DeleteFunc(out.Leases, func(l lessor.OutputLease) bool {
			return p.Fence != 0 || l.Attempt != out.Attempt || l.Fence >= out.Fence
		})
		for ; len(out.Data) == 0 && len(earlier) > 0; earlier = earlier[:len(earlier)-1] {
			q.Fence = earlier[len(earlier)-1].Fence
			if out, err = v.scheduler.Output(ctx, v.caller, p.Job.ID, q, nil); err != nil {
				return err
			}
		}
		if len(out.Data) == 0 {
			continue
		}
		data := out.Data
		if _, rest, cut := bytes.Cut(data, []byte("\n")); out.Offset > 0 && cut {
			data = rest // begin with a whole line
		}
		spans := colour(strings.ToValidUTF8(string(data), "\uFFFD"), p.Plain)
		p.Output = append(p.Output, outputPart{stream, out.Attempt, spans, out.Offset == 0 && len(earlier) == 0})
	}
	return nil
}

// colour splits text at its colour sequences (ESC [ … m). All other control sequences stay in the text, which is shown
// as text.
func colour(text string, plain bool) (spans []coloured) {
	class := ""
	for text != "" {
		before, after, found := strings.Cut(text, "\x1b[")
		codes, rest, ended := strings.Cut(after, "m")
		if found && (!ended || strings.Trim(codes, "0123456789;") != "") {
			before, rest, codes = before+"\x1b[", after, "no colour"
		}
		if before != "" {
			spans = append(spans, coloured{class, strings.ReplaceAll(before, "\r\n", "\n")})
		}
		if text = rest; found && codes != "no colour" && !plain {
			class = classOf(class, codes)
		}
	}
	return spans
}

// classOf returns the class of the text after a colour sequence: c0 to c7, and bold.
func classOf(class, codes string) string {
	is := strings.Fields(class)
	set := func(prefix, name string) {
		is = slices.DeleteFunc(is, func(c string) bool { return strings.HasPrefix(c, prefix) })
		if name != "" {
			is = append(is, name)
		}
	}
	for code := range strings.SplitSeq(codes, ";") {
		switch n, _ := strconv.Atoi(code); {
		case n == 0:
			is = nil
		case n == 1:
			set("bold", "bold")
		case n == 22:
			set("bold", "")
		case n >= 30 && n <= 37:
			set("c", "c"+strconv.Itoa(n-30))
		case n >= 90 && n <= 97:
			set("c", "c"+strconv.Itoa(n-90))
		case n == 38 || n == 48: // one of 256 or more colours: the numbers behind are its parts
			return strings.Join(is, " ")
		case n == 39:
			set("c", "")
		}
	}
	slices.Sort(is)
	return strings.Join(is, " ")
}
