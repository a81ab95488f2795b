package top

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// press handles a key.
func (m Model) press(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch key := k.String(); {
	case key == "ctrl+c":
		return m, tea.Quit
	case m.asked != nil:
		return m.confirm(key)
	case m.typing:
		return m.edit(key, k.Text), nil
	case m.shown != nil:
		if key == "q" || key == "esc" || key == "enter" {
			m.shown = nil
		}
		return m, nil
	default:
		return m.steer(key)
	}
}

// confirm cancels the job in question if the answer is yes; every other key means no.
func (m Model) confirm(key string) (tea.Model, tea.Cmd) {
	id := *m.asked
	m.asked = nil
	if key != "y" && key != "Y" {
		m.notice = "not cancelled"
		return m, nil
	}
	return m, func() tea.Msg {
		job, err := m.cfg.Cancel(m.ctx, id)
		return cancelled{job, err}
	}
}

// maxFilter bounds the filter; it is longer than any id or name.
const maxFilter = 200

func (m Model) edit(key, text string) Model {
	switch {
	case key == "enter":
		m.typing = false
	case key == "esc":
		m.typing, m.filter = false, ""
	case key == "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case len(m.filter)+len(text) <= maxFilter:
		m.filter += text
	}
	m.cursor = 0
	return m
}

func (m Model) steer(key string) (tea.Model, tea.Cmd) {
	m.notice = ""
	last := max(0, len(m.rows())-1)
	switch key {
	case "q":
		return m, tea.Quit
	case "esc":
		m.filter, m.cursor = "", 0
	case "1", "2", "3", "4":
		m.tab, m.cursor = int(key[0]-'1'), 0
	case "tab", "right", "l":
		m.tab, m.cursor = (m.tab+1)%tabs, 0
	case "shift+tab", "left", "h":
		m.tab, m.cursor = (m.tab+tabs-1)%tabs, 0
	case "down", "j":
		m.cursor = min(m.cursor+1, last)
	case "up", "k":
		m.cursor = max(m.cursor-1, 0)
	case "pgdown":
		m.cursor = min(m.cursor+m.page(), last)
	case "pgup":
		m.cursor = max(m.cursor-m.page(), 0)
	case "home", "g":
		m.cursor = 0
	case "end", "G":
		m.cursor = last
	case "/":
		m.typing = true
	case "enter", "i":
		if id := m.current().job; id != nil {
			return m, func() tea.Msg {
				job, err := m.cfg.Job(m.ctx, *id)
				return jobRead{job, err}
			}
		}
	case "c":
		m.asked = m.current().job
	}
	return m, nil
}
