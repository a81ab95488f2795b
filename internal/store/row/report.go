package row

import "lessor/internal/rules"

// Report is what a job last reported. Without mark_progress there was no interruption.
func Report(c *Codec, r *rules.Report) {
	ID(c, "job", &r.Job.UUID)
	floatOrNil(c, "progress", &r.Progress)
	textOrNil(c, "message", &r.Message)
	bytesOrNull(c, "checkpoint", &r.Checkpoint)
	Integer(c, "at", &r.At)
	floatOrNil(c, "highest", &r.Highest)
	var progress *float64
	var checkpoint []byte
	if r.Interrupted != nil {
		progress, checkpoint = &r.Interrupted.Progress, r.Interrupted.Checkpoint
	}
	floatOrNil(c, "mark_progress", &progress)
	bytesOrNull(c, "mark_checkpoint", &checkpoint)
	if c.from != nil && progress != nil {
		r.Interrupted = &rules.Progress{Progress: *progress, Checkpoint: checkpoint}
	}
	jsonOrNil(c, "question", &r.Question)
	integerOrNil(c, "journal_entries", &r.Entries)
	Integer(c, "sent", &r.Sent)
	Integer(c, "seen", &r.Seen)
}

// Message is a message to a job.
func Message(c *Codec, m *rules.Message) {
	ID(c, "job", &m.Job.UUID)
	Integer(c, "seq", &m.Seq)
	Text(c, "body", &m.Text)
	Integer(c, "sent_at", &m.SentAt)
	Text(c, "sent_by", &m.SentBy)
	TextOrNull(c, "key", &m.Key)
}

// Output is a piece of what an attempt printed.
func Output(c *Codec, p *rules.OutputPiece) {
	outputPlace(c, &p.OutputPlace)
	Integer(c, "start", &p.Start)
	bytesOrNull(c, "data", &p.Data)
}

// JoinedOutput is a piece as it is written, with the columns that say how.
func JoinedOutput(c *Codec, p *rules.OutputPiece) {
	Output(c, p)
	Integer(c, "most", &p.Join)
	Integer(c, "split", &p.Split)
}

// ShortOutput says where a piece starts, and up to which size pieces are short. Its columns are computed.
func ShortOutput(c *Codec, p *rules.OutputPiece) {
	outputPlace(c, &p.OutputPlace)
	Integer(c, "at", &p.Start)
	Integer(c, "most", &p.Join)
}

// Short returns the pieces that are short.
func Short(pieces []rules.OutputPiece) (short []rules.OutputPiece) {
	for _, p := range pieces {
		if int64(len(p.Data)) < p.Join {
			short = append(short, p)
		}
	}
	return short
}

// OutputMiddle is a range of a stream. Its columns are computed.
func OutputMiddle(c *Codec, m *rules.OutputMiddle) {
	outputPlace(c, &m.OutputPlace)
	Integer(c, "low", &m.From)
	Integer(c, "high", &m.To)
}

func outputPlace(c *Codec, p *rules.OutputPlace) {
	ID(c, "job", &p.Job.UUID)
	Integer(c, "fence", &p.Fence)
	Text(c, "stream", &p.Stream)
}
