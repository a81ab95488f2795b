// Package wire sends SQL statements to PostgreSQL in as few round trips as it can. It knows nothing of jobs or leases.
//
// A Conn gathers statements (Add) and sends them together (Send). In a pipeline (Pipeline) they go out in parts (Push),
// so that the server works on the first part while the caller decides about the next.
//
// Statements are prepared once a connection and planned generically (pin.go). A statement on many rows (Plural) carries
// one array a column; a column whose values are all equal travels as a single value (Rows).
//
// The session keeps no state that the next client of a pooler could see: pgbouncer in transaction mode may stand
// between.
package wire
