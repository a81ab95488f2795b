// Package client is Lessor's HTTP API as Go methods: submit jobs, hold leases, schedule, look around, administer.
//
// A Client speaks the words of package lessor and adds nothing to them. A refusal of the server comes back as the
// *lessor.Error that the server made, so errors.Is(err, lessor.ErrLeaseNotFound) holds here as it does inside the
// server. A denial is a result, not an error.
//
// A Client may be given several servers. It stays with one until that one cannot be reached or answers that it is
// unavailable, then goes on to the next, and around. One call makes a bounded number of tries.
//
// What is repeated: a call that certainly changed nothing (no connection, or "unavailable") is tried again. A call
// that may have been received is tried again only if a repetition is harmless: reading, heartbeats, completions,
// releases, lease requests (they carry a request id; one is made when there is none), submissions with an idempotency
// key, a scan of the workspace and a change of the log level. All others give up with an *UnreachableError that says
// so.
//
// A Client is safe for concurrent use. It does not renew leases by itself: that is package worker's part.
package client
