package wire

import "time"

// Plans are pinned: generic, and by index. Left to itself the planner changes to a scan while tables grow, and the rate
// falls to a quarter in mid-run. Time-outs are pinned too, and that the server sends warnings.
//
// A session of our own is pinned once. Behind a pooler, which shows in the process id that the pooler made up, the pins
// end with the transaction, because the next one may run in another session.
const pins = "select set_config('idle_in_transaction_session_timeout', $1::text, $4::boolean)," +
	" set_config('lock_timeout', $2::text, $4), set_config('statement_timeout', $3::text, $4)," +
	" set_config('plan_cache_mode', 'force_generic_plan', $4)," +
	" set_config('enable_seqscan', 'off', $4), set_config('enable_bitmapscan', 'off', $4)," +
	" set_config('enable_hashjoin', 'off', $4), set_config('enable_mergejoin', 'off', $4)," +
	" set_config('jit', 'off', $4), set_config('client_min_messages', 'warning', $4)"

var (
	pin        = SQL(pins)
	pinSession = SQL(pins + " where pg_backend_pid() = $5::integer")
)

// Limits are the time-outs of a transaction: of doing nothing, of waiting for a lock, of one statement.
type Limits struct{ Idle, Lock, Statement time.Duration }

func (l Limits) params(local bool) [][]byte {
	return [][]byte{Setting(l.Idle), Setting(l.Lock), Setting(l.Statement), Flag(local)}
}

// adopt pins a new session, if it is ours.
func (c *Conn) adopt(l Limits) error {
	return c.Do(Step{Verb: "connect", Stmt: pinSession, Each: func(*Row) error {
		c.session = l
		return nil
	}}, append(l.params(false), Int4(int32(c.pg.PID())))...)
}

// Begin adds the beginning of a transaction.
func (c *Conn) Begin(begin *Statement, l Limits) {
	c.warning = ""
	c.Add(Step{Verb: "begin", Stmt: begin})
	if c.session != l {
		c.Add(Step{Verb: "begin", Stmt: pin}, l.params(true)...)
	}
}
