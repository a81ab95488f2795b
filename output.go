package lessor

// The streams of an attempt's output.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// The limits of output. A sender cuts what is printed into chunks and sends at most one call a second.
const (
	MaxOutputChunk = 64 << 10 // bytes of a chunk
	MaxOutputCall  = 1 << 20  // bytes of all chunks of a call
	MaxOutputBeat  = 8 << 10  // bytes of all chunks that a heartbeat carries
)

// OutputChunk is a piece of what an attempt printed: Data begins at the byte Offset of its stream.
type OutputChunk struct {
	Stream *string `json:"stream"`
	Offset *int64  `json:"offset"`
	Data   []byte  `json:"data"` // base64 on the wire
}

// OutputReport is what a worker sends of an attempt's output, the chunks of each stream in order. A chunk that was sent
// before changes nothing. A stream may leave bytes out.
type OutputReport struct {
	WorkerID *string       `json:"worker_id"`
	Chunks   []OutputChunk `json:"chunks"`
}

// OutputAnswer says how much the server keeps of each stream of an attempt: the first HeadBytes and at least the last
// TailBytes. What is between need not be sent; if TailBytes is 0, nothing need be.
type OutputAnswer struct {
	OK        bool  `json:"ok"`
	HeadBytes int64 `json:"head_bytes"`
	TailBytes int64 `json:"tail_bytes"`
}

// OutputQuery asks for output of an attempt, by default of stdout of the last attempt from the beginning.
type OutputQuery struct {
	Attempt int64  // 0 = the last
	Fence   int64  // of one of the attempt's leases; 0 = the last
	Stream  string // "" = stdout
	Offset  int64  // below 0 it counts from the end
}

// Output is a piece of the output of an attempt.
type Output struct {
	JobID JobID `json:"job_id"`
	// Attempt is 0 if the job has none yet. An attempt that was given back goes on under another lease: its number
	// stays, and what it prints then is the output of another Fence.
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
	Stream  string `json:"stream"`
	// Offset is where Data begins: behind the offset asked for if what is between was not kept.
	Offset     int64  `json:"offset"`
	Data       []byte `json:"data"` // base64 on the wire
	NextOffset int64  `json:"next_offset"`
	Size       int64  `json:"size"`  // of the whole stream, kept or not
	Ended      bool   `json:"ended"` // the lease is over, and Data reaches to its end
	// Leases are those of the job, of all attempts, whose output is kept, oldest first.
	Leases []OutputLease `json:"leases"`
}

// OutputLease is a lease under which something was printed that is kept.
type OutputLease struct {
	Attempt int   `json:"attempt"`
	Fence   int64 `json:"fence"`
	Live    bool  `json:"live"`
}
