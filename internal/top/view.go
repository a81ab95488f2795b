package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"lessor/internal/table"
)

var (
	bold     = lipgloss.NewStyle().Bold(true)
	faint    = lipgloss.NewStyle().Faint(true)
	selected = lipgloss.NewStyle().Reverse(true)
	urgent   = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// around is the number of lines above and below the rows: figures, tabs, header, and the line of keys.
const around = 5

// page is the number of rows that fit.
func (m Model) page() int { return max(1, m.height-around) }

// View draws the screen.
func (m Model) View() tea.View {
	body := m.table()
	if m.shown != nil {
		body = m.job()
	}
	if len(body) > m.page()+1 {
		body = body[:m.page()+1]
	}
	for len(body) < m.page()+1 {
		body = append(body, "")
	}
	lines := append([]string{m.figures(), m.tabLine(), ""}, body...)
	lines = append(lines, m.footer())
	for i := range lines {
		lines[i] = lipgloss.NewStyle().Inline(true).MaxWidth(m.width).Render(lines[i])
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "lessor top"
	return v
}

func (m Model) figures() string {
	s := &m.snap.Status
	q := s.QueueDepth
	leased := bar(float64(s.LeasedUnits)/max(float64(s.UsableUnits), 1), 10)
	line := bold.Render("lessor") +
		fmt.Sprintf("  units %s %d/%d  busy %d", leased, s.LeasedUnits, s.UsableUnits, s.Busy) +
		fmt.Sprintf("  queued %d", m.snap.queued())
	byPriority := fmt.Sprintf(" (high %d, normal %d, low %d, background %d)", q.High, q.Normal, q.Low, q.Background)
	if lipgloss.Width(line+byPriority) <= m.width {
		line += byPriority
	}
	if s.Draining {
		line += urgent.Render("  draining")
	}
	if s.BrakeUntil != 0 {
		line += urgent.Render("  mass-expiry brake")
	}
	return line
}

func (m Model) tabLine() string {
	var parts []string
	counts := [tabs]int{m.snap.Status.ActiveLeases, m.snap.queued(), len(m.snap.Workers), len(m.snap.Alerts)}
	for i, name := range [tabs]string{"leases", "queue", "workers", "alerts"} {
		text := fmt.Sprintf(" %d %s %d ", i+1, name, counts[i])
		switch {
		case i == m.tab:
			text = selected.Render(text)
		case i == alertsTab && counts[i] > 0:
			text = urgent.Render(text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// table returns the header and the visible rows, which are those around the cursor.
func (m Model) table() []string {
	rows := m.rows()
	first := max(0, min(m.cursor-m.page()/2, len(rows)-m.page()))
	visible := rows[first:min(len(rows), first+m.page())]
	cells := make([][]string, len(visible))
	for i, r := range visible {
		cells[i] = r.cells
	}
	lines := table.Lines(headers[m.tab], cells, m.width)
	lines[0] = faint.Render(lines[0])
	for i, r := range visible {
		switch {
		case first+i == m.cursor:
			lines[i+1] = selected.Render(lines[i+1])
		case r.urgent:
			lines[i+1] = urgent.Render(lines[i+1])
		}
	}
	if len(rows) == 0 {
		lines = append(lines, faint.Render(m.none()))
	}
	return lines
}

func (m Model) none() string {
	if m.filter != "" {
		return "nothing matches; esc clears the filter"
	}
	return [tabs]string{
		"no leases", "no queued jobs: lessor submit hello --payload '{\"name\":\"world\"}'",
		"no worker was seen in the last five minutes", "no open alerts",
	}[m.tab]
}

// job returns the fields of the inspected job that are set.
func (m Model) job() []string {
	j := m.shown
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	progress := ""
	if j.Progress != nil {
		progress = fmt.Sprintf("%s %.0f %%", bar(*j.Progress, 20), *j.Progress*100)
	}
	var drawn strings.Builder
	t := table.New(&drawn, 0)
	for _, f := range [][2]string{
		{"job", j.ID.String()},
		{"type", j.Type},
		{"state", string(j.State)},
		{"attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts)},
		{"progress", progress},
		{"message", text(j.Message)},
		{"error", text(j.Error)},
		{"payload", string(j.Payload)},
		{"result", string(j.Result)},
		{"created", j.CreatedAt.String()},
		{"trace", j.TraceID},
		{"tenant", j.TenantID.String()},
		{"tags", strings.Join(j.Tags, ", ")},
	} {
		if f[1] != "" && f[1] != "null" { // null is a payload or result that is not set
			t.Row(f[:]...)
		}
	}
	_ = t.Flush() // a string accepts everything
	return strings.Split(drawn.String(), "\n")
}

func (m Model) footer() string {
	switch {
	case m.asked != nil:
		return urgent.Render("cancel job " + m.asked.String() + "? y = yes, any other key = no")
	case m.typing:
		return "filter: " + m.filter + "█   enter keeps it, esc clears it"
	case m.notice != "":
		return table.Clean(m.notice)
	case m.err != nil:
		return urgent.Render(table.Clean(m.err.Error()))
	case m.shown != nil:
		return faint.Render("esc back")
	}
	keys := "1-4 tab  ↑↓ move  / filter  enter inspect  c cancel  q quit"
	if m.filter != "" {
		keys = "filter: " + m.filter + "   " + keys
	}
	return faint.Render(keys)
}
