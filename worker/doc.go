// Package worker is the side that does the work: it takes jobs or messages under a lease, shows by its beats that the work
// moves, and stops when the lease is lost. Worker runs handlers for a server's jobs; Mailbox is for those who want messages.
//
// A lease lives on proof of work. Work calls Heartbeat.Beat where it makes progress; a LeaseExtender that is attached to the
// heartbeat extends the lease of the message at hand, at most once an interval; no timer does. So work that hangs falls
// silent, its lease runs out, and the message goes to somebody else:
//
//	work ──Beat──► Heartbeat ──► observers, in the order added
//	                   │              └─ LeaseExtender ──Extend──► Message (at most once an interval)
//	                   └──Elapsed──► Watchdog ──► action, when the work is silent for too long
//
// A Mailbox hands out messages under such leases:
//
//	Send ──► waiting ──Receive──► hidden ──Acknowledge──► gone
//	            ▲                   │
//	            └───────────────────┤ Nack and its delay, Return, or the end of the visibility
//	                                └── the same at the last of MaxDeliveries ──► dead letters
//
// What always holds, for every mailbox (mailboxtest):
//
//   - a message is in exactly one of these places, and nothing is lost (RandomLives);
//   - deliveries are counted and rise by one, each with a receipt of its own (RandomLives, VisibilityZeroShowsTheMessageAgainAtOnce);
//   - a receipt that is over changes nothing (OverdueReceiptFailsAtOnce, OldReceiptDoesNotTouchTheNewDelivery);
//   - a message that kills its workers ends as a dead letter (MessageThatKillsItsWorkersBecomesADeadLetter).
//
// And of the heartbeat: a beat costs no more than a glance at the clock unless an extension is due
// (TestBeatAllocatesNothingWhenNoExtensionIsDue, BenchmarkBeat), and however many beat at once, there is one extension an
// interval (TestAtMostOneExtensionAnIntervalUnderBeatsAtOnce).
//
// Not promised: that a message is worked on only once.
//
// Nothing here starts a goroutine that nobody waits for: Heartbeat, LeaseExtender and Memory start none, Watchdog runs in its
// caller's.
package worker
