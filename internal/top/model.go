package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"lessor"
)

// Config is what a view is made of. All functions are required.
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

// Model is the state of the view: what was read last, and what the person at the keyboard is about.
type Model struct {
	cfg           Config
	ctx           context.Context //nolint:containedctx // commands of the view have no other way to learn that it ends
	snap          Snapshot
	err           error
	tab, cursor   int
	filter        string
	typing        bool          // keys go into the filter
	asked         *lessor.JobID // to be cancelled, if the answer is yes
	shown         *lessor.Job   // is inspected
	notice        string
	width, height int
}

// New returns the view. It asks nothing until it is run.
func New(ctx context.Context, cfg Config) Model {
	return Model{cfg: cfg, ctx: ctx, width: 80, height: 24}
}

// What comes back to the view.
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

// Init begins to read.
func (m Model) Init() tea.Cmd { return m.read }

func (m Model) read() tea.Msg {
	snap, err := m.cfg.Read(m.ctx)
	return readIn{snap, err}
}

// Update takes in what happened. The next read begins when the last one is here, so that a slow server is asked less.
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

// take keeps the cursor on the row it is on, wherever that went.
func (m *Model) take(in readIn) {
	m.err = in.err
	if in.err != nil {
		return // the last snapshot stays, and its age is seen
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

// current is the row under the cursor, the zero row if there is none.
func (m Model) current() row {
	if rows := m.rows(); m.cursor < len(rows) {
		return rows[m.cursor]
	}
	return row{}
}
