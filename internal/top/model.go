package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"lessor"
)

// Config holds the functions of a view, which are all required, and its refresh interval.
type Config struct {
	// Every is how often the view is refreshed.
	Every  time.Duration
	Read   func(context.Context) (Snapshot, error)
	Job    func(context.Context, lessor.JobID) (lessor.Job, error)
	Cancel func(context.Context, lessor.JobID) (lessor.Job, error)
}

// The tabs.
const (
	leasesTab = iota
	queueTab
	workersTab
	alertsTab
	tabs
)

// Model is the state of the view: the last snapshot, and what the user is doing.
type Model struct {
	cfg           Config
	ctx           context.Context //nolint:containedctx // the view's commands get no other context
	snap          Snapshot
	err           error
	tab, cursor   int
	filter        string
	typing        bool          // keys go into the filter
	asked         *lessor.JobID // the job to cancel if the answer is yes
	shown         *lessor.Job   // the job that is inspected
	notice        string
	width, height int
}

// New returns the view. It makes no call before it runs.
func New(ctx context.Context, cfg Config) Model {
	return Model{cfg: cfg, ctx: ctx, width: 80, height: 24}
}

// The messages to the view.
type (
	wake   struct{}
	readIn struct {
		snap Snapshot
		err  error
	}
	jobRead struct {
		job lessor.Job
		err error
	}
	cancelled jobRead
)

// Init starts the first read.
func (m Model) Init() tea.Cmd { return m.read }

func (m Model) read() tea.Msg {
	snap, err := m.cfg.Read(m.ctx)
	return readIn{snap, err}
}

// Update handles a message. The next read starts only after the last one was answered, so that a slow server gets fewer
// calls.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case wake:
		return m, m.read
	case readIn:
		m.take(msg)
		return m, tea.Tick(m.cfg.Every, func(time.Time) tea.Msg { return wake{} })
	case jobRead:
		m.notice = ""
		if msg.err != nil {
			m.notice = msg.err.Error()
		} else {
			m.shown = &msg.job
		}
	case cancelled:
		m.notice = "cancelled " + msg.job.ID.String()
		if msg.err != nil {
			m.notice = msg.err.Error()
		} else if msg.job.State != lessor.Cancelled {
			m.notice = "asked the worker of " + msg.job.ID.String() + " to stop"
		}
		return m, m.read
	case tea.KeyPressMsg:
		return m.press(msg)
	}
	return m, nil
}

// take stores a new snapshot. The cursor stays on its row, also if that has moved.
func (m *Model) take(in readIn) {
	m.err = in.err
	if in.err != nil {
		return // the last snapshot stays
	}
	was := m.current().key
	m.snap = in.snap
	rows := m.rows()
	m.cursor = max(0, min(m.cursor, len(rows)-1))
	for i := range rows {
		if rows[i].key == was {
			m.cursor = i
		}
	}
}

// current returns the row under the cursor, the zero row if there is none.
func (m Model) current() row {
	if rows := m.rows(); m.cursor < len(rows) {
		return rows[m.cursor]
	}
	return row{}
}
