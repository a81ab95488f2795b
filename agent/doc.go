// Package agent runs a model with tools as the work of a message, so that the lease lives on what the agent does.
//
// Everything that moves the work beats: the inner loop at each model call, an adapter at each part of a streamed
// answer, the executor before and after every tool, a tool wherever it calls ToolContext.Beat. Each beat may extend
// the lease of the message; nothing else does:
//
//	Loop ── receive, attach ──► Execute ──► Inner ──► Adapter (a model provider)
//	  ▲                                       └─────► Executor ──► Tool ──► ToolContext.Beat
//	  └── detach, reply, acknowledge                      every beat ──► worker.LeaseExtender ──► Message.Extend
//
// So an agent that hangs in a model call or a tool loses its message to another worker, and the reply of the one that
// hung is refused. A request is worked on at least once; tools must bear being called again.
//
// An error is an answer: it is replied as error and acknowledged. With a mailbox for dead letters it is tried again
// first, later each time, and the last delivery goes there.
//
// The package does not choose a model, keeps no memory between requests, and runs tools one after the other.
package agent
