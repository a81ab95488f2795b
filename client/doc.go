// Package client is Lessor's HTTP API as Go methods: submit jobs, hold leases, manage schedules, observe, administer.
//
//	c, err := client.New(client.Config{Server: "http://127.0.0.1:5377"})
//	job, err := c.Submit(ctx, "mail", Mail{To: "ann"}, &lessor.SubmitOptions{IdempotencyKey: "order-17"})
//
// A Client uses the types of package lessor. When the server refuses a call, the method returns the *lessor.Error that
// the server made, so that errors.Is(err, lessor.ErrLeaseNotFound) works here as it does inside the server. A denial is
// a result, not an error.
//
// A method that returns one page of a list also returns the cursor of the next page, which is empty on the last page.
// A page may be short or even empty although others follow. The All methods return every entry and end at the first
// error.
//
// A Client may have several servers. It uses one until that server cannot be reached or answers that it is unavailable,
// and then moves on to the next. One call makes a bounded number of tries:
//
//   - A call that certainly changed nothing (no connection, or "unavailable") is repeated.
//   - A call that a server may have received is repeated only if that is harmless. Harmless are reads, heartbeats,
//     completions, releases, lease requests (each has a request id), submissions with an idempotency key, workspace
//     scans and changes of the log level. Every other call fails with an *UnreachableError that says so.
//
// A Client is safe for concurrent use. It does not renew leases by itself; package worker does.
package client
