// Package agent runs a model with tools as the work of a message, so that the lease of the message lives on what the
// agent does.
//
// Every step of the work beats: the inner loop at each model call, an adapter at each part of a streamed answer, the
// executor before and after each tool, and a tool wherever it calls ToolContext.Beat. Only a beat can extend the lease:
//
//	Loop ─ receive, attach ─► Execute ─► Inner ─► Adapter (a model provider)
//	  ▲                                    └────► Executor ─► Tool ─► ToolContext.Beat
//	  └─ detach, reply, acknowledge              every beat ─► worker.LeaseExtender ─► Message.Extend
//
// So an agent that hangs in a model call or a tool loses its message to another worker, and its late reply is refused.
// A request is processed at least once; tools must tolerate repeated calls.
//
// An error is an answer: the loop replies with it and acknowledges the message. With a mailbox for dead letters the
// request is tried again first, after growing delays, and the last delivery sends it there.
//
// The package does not choose a model, keeps no memory between requests, and runs tools one after another.
package agent
