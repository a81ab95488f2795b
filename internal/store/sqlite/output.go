package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/row"
)

var (
	outputColumns = row.Columns(row.Output)
	saveOutput    = "insert into output (" + outputColumns + ") select ?1, ?2, ?3, iif(joins, start, cut)," +
		" iif(joins, cast(data || rest as blob), rest) from (select *," +
		" stop = cut and stop <> ?7 and length(data) + length(rest) <= ?6 as joins from (select *," +
		" substr(?5, cut - ?4 + 1) as rest from (select *, max(?4, coalesce(stop, 0)) as cut from (select 1)" +
		" left join (select start, data, start + length(data) as stop" +
		" from output where " + ofStream + " order by start desc limit 1)))) where length(rest) > 0" +
		" on conflict (job, fence, stream, start) do update set data = excluded.data"
	readOutput = "select " + outputColumns + " from output where " + ofStream + " and start >=" +
		" coalesce((select max(start) from output where " + ofStream + " and start <= ?4), 0) order by start"
)

const (
	ofStream      = "job = ?1 and fence = ?2 and stream = ?3"
	dropScattered = "delete from output as o where " + ofStream + " and start + length(data) < ?4" +
		" and length(data) < ?5" +
		" and start = (select start from output where " + ofStream + " and start < ?4 order by start desc limit 1)" +
		" and start > coalesce((select p.start + length(p.data) from output p where " + ofStream +
		" and p.start < o.start order by p.start desc limit 1), 0)"
	dropOutput = "delete from output where " + ofStream + " and start between ?4 and ?5 and start + length(data) <= ?5"
	// Each step finds the next fence by index, however many pieces there are of it.
	outputFences = "with recursive f (fence) as (select max(fence) from output where job = ?1 union all" +
		" select (select max(fence) from output where job = ?1 and fence < f.fence) from f where fence is not null)" +
		" select fence from f where fence is not null limit ?2"
	outputEnd = "select start + length(data) from output where " + ofStream + " order by start desc limit 1"
)

// SaveOutput implements scheduler.Tx.
func (t *tx) SaveOutput(_ context.Context, pieces []rules.OutputPiece) error {
	if err := writeEach(t, "save output", saveOutput, pieces, row.JoinedOutput); err != nil {
		return err
	}
	return writeEach(t, "drop scattered output", dropScattered, row.Short(pieces), row.ShortOutput)
}

// DropOutput implements scheduler.Tx.
func (t *tx) DropOutput(_ context.Context, ranges []rules.OutputMiddle) error {
	return writeEach(t, "drop output", dropOutput, ranges, row.OutputMiddle)
}

// writeEach runs a statement for each value, with its columns as parameters.
func writeEach[T any](t *tx, verb, text string, values []T, declare func(*row.Codec, *T)) error {
	return t.do(verb, func() error {
		for i := range values {
			if err := query(t.conn, text, func(a *args) { declare(row.Write(a), &values[i]) }, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// Output implements scheduler.View.
func (v *view) Output(
	ctx context.Context, at rules.OutputPlace, offset int64, limit int,
) (pieces []rules.OutputPiece, end int64, err error) {
	bind := func(a *args) {
		a.ID(at.Job.UUID)
		a.Int(at.Fence)
		a.Text(at.Stream)
	}
	err = query(v.conn, readOutput, func(a *args) { bind(a); a.Int(offset) }, func(r *result) error {
		pieces = append(pieces, rules.OutputPiece{})
		p := &pieces[len(pieces)-1]
		row.Output(r.codec, p)
		if len(pieces) > 1 {
			limit -= len(p.Data)
		}
		if limit <= 0 {
			return errEnough
		}
		return nil
	})
	if err == nil {
		err = query(v.conn, outputEnd, bind, func(r *result) error { end = r.Int(); return nil })
	}
	return pieces, end, readFault(ctx, "read output", err)
}

// OutputFences implements scheduler.View.
func (v *view) OutputFences(ctx context.Context, job lessor.JobID, limit int) (fences []int64, err error) {
	err = query(v.conn, outputFences, func(a *args) { a.ID(job.UUID); a.limit(limit) }, func(r *result) error {
		fences = append(fences, r.Int())
		return nil
	})
	return fences, readFault(ctx, "read fences of output", err)
}
