package row

import "lessor/internal/rules"

// Output is a piece of what an attempt printed.
func Output(c *Codec, p *rules.OutputPiece) {
	outputPlace(c, &p.OutputPlace)
	Integer(c, "start", &p.Start)
	bytesOrNull(c, "data", &p.Data)
}

// JoinedOutput is a piece as it is written, with the column that is computed.
func JoinedOutput(c *Codec, p *rules.OutputPiece) {
	Output(c, p)
	Integer(c, "most", &p.Join)
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
