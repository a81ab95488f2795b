package postgres

import (
	"strconv"
	"time"
)

// Plans are pinned: generic, and by index. Left to itself the planner changes to a scan while tables grow, and the rate falls
// to a quarter in mid-run. Time-outs are pinned too, and that warnings are sent (standby.go). A session that is ours is pinned once. Behind a pooler it belongs to nobody, which shows in the process id that
// the pooler made up: there everything ends with the transaction, so that the next may go to another session.
const pins = "select set_config('idle_in_transaction_session_timeout', $1::text, $4::boolean), set_config('lock_timeout', $2::text, $4)," +
	" set_config('statement_timeout', $3::text, $4), set_config('plan_cache_mode', 'force_generic_plan', $4)," +
	" set_config('enable_seqscan', 'off', $4), set_config('enable_bitmapscan', 'off', $4)," +
	" set_config('enable_hashjoin', 'off', $4), set_config('enable_mergejoin', 'off', $4), set_config('jit', 'off', $4)," +
	" set_config('client_min_messages', 'warning', $4)"

var (
	pin        = sql(pins)
	pinSession = sql(pins + " where pg_backend_pid() = $5::integer")
)

// limits are the time-outs of transactions: of one that does nothing, of the waiting for a lock, of a statement.
type limits struct{ idle, lock, stmt time.Duration }

func (l limits) params(local bool) [][]byte {
	return [][]byte{millisOf(l.idle), millisOf(l.lock), millisOf(l.stmt), flagOf(local)}
}

// millisOf is a setting's value.
func millisOf(d time.Duration) []byte { return strconv.AppendInt(nil, d.Milliseconds(), 10) }

// brief are the limits of what a node says about itself.
var brief = limits{time.Second, time.Second, time.Second}

// adopt pins a new session, if it is ours.
func (c *conn) adopt(l limits) error {
	return c.once(step{verb: "connect", stmt: pinSession, each: func(*row) error {
		c.session = l
		return nil
	}}, append(l.params(false), int4Of(int32(c.pg.PID())))...)
}

// open begins a transaction.
func (c *conn) open(begin *statement, l limits) {
	c.warning = nil
	c.add(step{verb: "begin", stmt: begin})
	if c.session != l {
		c.add(step{verb: "begin", stmt: pin}, l.params(true)...)
	}
}
