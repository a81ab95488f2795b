package postgres

import (
	"context"

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
		" case when joins then l.start else r.start end, case when joins then l.data || r.data else r.data end"+
		" from ({rows}) r left join lateral (select start, data, start + octet_length(data) as stop,"+
		" start + octet_length(data) = r.start and octet_length(data) + octet_length(r.data) <= r.most as joins"+
		" from output last where "+wire.At("last.job", "r.job")+" and last.fence = r.fence and last.stream = r.stream"+
		" order by start desc limit 1) l on true where coalesce(l.stop, 0) < r.start + octet_length(r.data)"+
		" on conflict (job, fence, stream, start) do update set data = excluded.data"+
		" where octet_length(excluded.data) > octet_length(o.data)",
		row.Kinds(row.JoinedOutput), row.Columns(row.JoinedOutput))
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
	outputEnd = wire.SQL("select start + octet_length(data) from output where" + ofStream +
		" order by start desc limit 1")
)

// SaveOutput implements scheduler.Tx.
func (t *tx) SaveOutput(_ context.Context, pieces []rules.OutputPiece) error {
	return save(t, "save output", saveOutput, pieces, row.JoinedOutput)
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
