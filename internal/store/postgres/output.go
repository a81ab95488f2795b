package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

const ofStream = " job = $1::uuid and fence = $2::bigint and stream = $3::text"

// maxOutputRows bounds the pieces of one read: a command that prints a line a second makes small ones.
const maxOutputRows = "1024"

var (
	outputColumns = row.Columns(row.Output)
	saveOutput    = wire.Plural("insert into output as o ("+outputColumns+") select r.job, r.fence, r.stream,"+
		" case when joins then l.start else c.start end, case when joins then l.data || c.data else c.data end"+
		" from ({rows}) r left join lateral (select start, data, start + octet_length(data) as stop"+
		" from output last where "+wire.At("last.job", "r.job")+" and last.fence = r.fence and last.stream = r.stream"+
		lastOfStream+") l on true"+
		" cross join lateral (select greatest(r.start, l.stop) as start, substring(r.data from"+
		" least(greatest(l.stop - r.start, 0), octet_length(r.data))::integer + 1) as data) c"+
		" cross join lateral (select l.stop = c.start and l.stop <> r.split"+
		" and octet_length(l.data) + octet_length(c.data) <= r.most as joins) j where octet_length(c.data) > 0"+
		" on conflict (job, fence, stream, start) do update set data = excluded.data",
		row.Kinds(row.JoinedOutput), row.Columns(row.JoinedOutput))
	dropScattered = wire.Plural("delete from output o using ({rows}) r cross join lateral (select start,"+
		" start + octet_length(data) as stop, octet_length(data) as size from output"+beforeIn("r.at")+") s"+
		" where "+wire.At("o.job", "r.job")+" and o.fence = r.fence and o.stream = r.stream and o.start = s.start"+
		" and s.stop < r.at and s.size < r.most and s.start >"+
		" coalesce((select p.start + octet_length(p.data) from output p"+beforeIn("s.start")+"), 0)",
		row.Kinds(row.ShortOutput), row.Columns(row.ShortOutput))
	dropOutput = wire.Plural("delete from output o using ({rows}) r where "+wire.At("o.job", "r.job")+
		" and o.fence = r.fence and o.stream = r.stream and o.start between r.low and r.high"+
		" and o.start + octet_length(o.data) <= r.high", row.Kinds(row.OutputMiddle), row.Columns(row.OutputMiddle))
	// The sizes of the pieces are known without their data, which is read only of those that are returned.
	readOutput = wire.SQL("select " + outputColumns + " from (select *, sum(octet_length(data)) over w" +
		" - octet_length(data) - first_value(octet_length(data)) over w as before" +
		" from (select * from output where" + ofStream + " and start >=" +
		" coalesce((select max(start) from output where" + ofStream + " and start <= $4::bigint), 0)" +
		" order by start limit " + maxOutputRows + ") page window w as (order by start)) sized" +
		" where before < $5::bigint order by start")
	// Each step finds the next fence by index, however many pieces there are of it.
	outputFences = wire.SQL("with recursive f as ((select fence from output where " + wire.At("job", "$1::uuid") +
		lastOfStream + ") union all select l.fence from f cross join lateral (select fence from output where " +
		wire.At("job", "$1::uuid") + " and output.fence < f.fence" + lastOfStream + ") l)" +
		" select fence from f limit $2::bigint")
	outputEnd = wire.SQL("select start + octet_length(data) from output where" + ofStream +
		" order by start desc limit 1")
)

// lastOfStream names the whole key, so that the server reads one row from the end of the index and sorts nothing.
const lastOfStream = " order by job desc, fence desc, stream desc, start desc limit 1"

// beforeIn finds the last piece of a stream that starts before an offset.
func beforeIn(offset string) string {
	return " where " + wire.At("job", "r.job") + " and fence = r.fence and stream = r.stream" +
		" and start < " + offset + lastOfStream
}

// SaveOutput implements scheduler.Tx.
func (t *tx) SaveOutput(_ context.Context, pieces []rules.OutputPiece) error {
	if err := save(t, "save output", saveOutput, pieces, row.JoinedOutput); err != nil {
		return err
	}
	return save(t, "drop scattered output", dropScattered, row.Short(pieces), row.ShortOutput)
}

// DropOutput implements scheduler.Tx.
func (t *tx) DropOutput(_ context.Context, ranges []rules.OutputMiddle) error {
	return save(t, "drop output", dropOutput, ranges, row.OutputMiddle)
}

// Output implements scheduler.View.
func (v *view) Output(
	_ context.Context, at rules.OutputPlace, offset int64, limit int,
) (pieces []rules.OutputPiece, end int64, err error) {
	stream := [][]byte{wire.ID(at.Job.UUID), wire.Int8(at.Fence), wire.Text(at.Stream)}
	v.add("read output", wire.Step{Stmt: outputEnd, Each: func(r *wire.Row) error {
		end = r.Int()
		return nil
	}}, stream...)
	err = v.query("read output", readOutput, collect(&pieces, row.Output),
		append(stream, wire.Int8(offset), wire.Limit(limit))...)
	return pieces, end, err
}

// OutputFences implements scheduler.View.
func (v *view) OutputFences(_ context.Context, job lessor.JobID, limit int) (fences []int64, err error) {
	err = v.query("read fences of output", outputFences, func(r *wire.Row) error {
		fences = append(fences, r.Int())
		return nil
	}, wire.ID(job.UUID), wire.Limit(limit))
	return fences, err
}
