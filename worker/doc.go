// Package worker runs jobs and messages under a lease. The work shows with beats that it makes progress, and stops when
// its lease is lost. Worker runs handlers for the jobs of a server; Mailbox is for programs that work with messages.
//
//	w, err := worker.New(worker.Config{Client: c})
//	worker.Handle(w, "mail", func(ctx context.Context, job *worker.Job[Mail]) (any, error) {
//		return nil, send(ctx, job.Payload)
//	})
//	err = w.RunUntilSignal(ctx)
//
// A lease lives on proof of progress. The work calls Heartbeat.Beat where it moves. A LeaseExtender that is attached to
// the heartbeat extends the lease of the current message, at most once per interval. No timer extends a lease, so work
// that hangs falls silent, loses its lease, and the message goes to another worker:
//
//	work ──Beat──► Heartbeat ──► observers, in the order in which they were added
//	                   │              └─ LeaseExtender ──Extend──► Message (at most once per interval)
//	                   └──Elapsed──► Watchdog ──► action, when the work is silent for too long
//
// A Mailbox hands out messages under such leases:
//
//	Send ──► waiting ──Receive──► hidden ──Acknowledge──► gone
//	            ▲                   │
//	            └───────────────────┤ Nack and its delay, Return, or the end of the visibility
//	                                └── the same at the last of MaxDeliveries ──► dead letters
//
// Every mailbox keeps these promises, which package mailboxtest checks:
//
//   - A message is in exactly one of these places, and none is lost (RandomLives).
//   - Deliveries are counted in steps of one, and each has its own receipt (RandomLives,
//     VisibilityZeroShowsTheMessageAgainAtOnce).
//   - An expired receipt changes nothing (OverdueReceiptFailsAtOnce, OldReceiptDoesNotTouchTheNewDelivery).
//   - A message that kills its workers becomes a dead letter (MessageThatKillsItsWorkersBecomesADeadLetter).
//
// The heartbeat keeps two more: a beat only reads the clock unless an extension is due
// (TestBeatAllocatesNothingWhenNoExtensionIsDue, BenchmarkBeat), and any number of concurrent beats causes one
// extension per interval (TestAtMostOneExtensionAnIntervalUnderBeatsAtOnce).
//
// The package does not promise that a message is processed only once.
//
// Heartbeat, LeaseExtender and Memory start no goroutines. Watchdog.Run works in the goroutine of its caller, and
// Worker.Run waits for every goroutine that it starts.
package worker
