package httpapi

import "lessor"

// workGrants is the answer to a request with view "work": what a worker needs of its grants, and no more. Of a lease it
// leaves out what its worker knows; of a job it leaves out the lease, when it was updated, and every field that has its
// default value. docs/http-workers.md states the defaults.
type workGrants struct {
	Denied bool        `json:"denied"`
	Grants []workGrant `json:"grants"`
}

type workGrant struct {
	Lease workLease `json:"lease"`
	Job   workJob   `json:"job"`
}

type workLease struct {
	ID               lessor.LeaseID `json:"lease_id"`
	IssuedAt         lessor.Instant `json:"issued_at"`
	ExpiresAt        lessor.Instant `json:"expires_at"`
	Fence            int64          `json:"fence"`
	TTLMS            int64          `json:"ttl_ms"`
	HeartbeatAfterMS int64          `json:"heartbeat_after_ms"`
}

// workJob is a job without the fields that have their default value.
type workJob struct{ *lessor.Job }

// The defaults of fields that a work view leaves out, besides null, false, 0, the empty text and the empty list.
const (
	workUnits = 1
	workClass = "default"
)

func workView(grants []lessor.Grant) workGrants {
	w := workGrants{Grants: make([]workGrant, len(grants))}
	for i := range grants {
		l := &grants[i].Lease
		w.Grants[i] = workGrant{
			workLease{l.ID, l.IssuedAt, l.ExpiresAt, l.Fence, l.TTLMS, l.HeartbeatAfterMS}, workJob{&grants[i].Job},
		}
	}
	return w
}

func (g workGrants) appendTo(b []byte) []byte {
	b = append(b, `{"denied":false,"grants":[`...)
	for i := range g.Grants {
		l := &g.Grants[i].Lease
		b = appendID(append(between(b, i), `{"lease":{"lease_id":`...), l.ID.UUID)
		b = appendInstant(append(b, `,"issued_at":`...), l.IssuedAt)
		b = appendInstant(append(b, `,"expires_at":`...), l.ExpiresAt)
		b = appendInt(append(b, `,"fence":`...), l.Fence)
		b = appendInt(append(b, `,"ttl_ms":`...), l.TTLMS)
		b = appendInt(append(b, `,"heartbeat_after_ms":`...), l.HeartbeatAfterMS)
		b = appendWorkJob(append(b, `},"job":`...), g.Grants[i].Job.Job)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func appendWorkJob(b []byte, j *lessor.Job) []byte {
	b = appendID(append(b, `{"job_id":`...), j.ID.UUID)
	b = appendText(append(b, `,"type":`...), j.Type)
	b = appendText(append(b, `,"priority":`...), j.Priority.String())
	b = appendRaw(append(b, `,"payload":`...), j.Payload)
	b = appendInstant(append(b, `,"created_at":`...), j.CreatedAt)
	b = appendInt(append(b, `,"attempt":`...), int64(j.Attempt))
	b = appendInt(append(b, `,"max_attempts":`...), int64(j.MaxAttempts))
	b = appendText(append(b, `,"trace_id":`...), j.TraceID)
	if j.State != lessor.Leased {
		b = appendText(append(b, `,"state":`...), string(j.State))
	}
	if j.RequestedUnits != workUnits {
		b = appendInt(append(b, `,"requested_units":`...), int64(j.RequestedUnits))
	}
	if j.FairnessClass != workClass {
		b = appendText(append(b, `,"fairness_class":`...), j.FairnessClass)
	}
	if !j.TenantID.IsZero() {
		b = appendID(append(b, `,"tenant_id":`...), j.TenantID.UUID)
	}
	if len(j.Tags) > 0 {
		b = append(b, `,"tags":[`...)
		for i, t := range j.Tags {
			b = appendText(between(b, i), t)
		}
		b = append(b, ']')
	}
	return append(appendRareOfWork(b, j), '}')
}

// appendRareOfWork writes the fields that few granted jobs have.
func appendRareOfWork(b []byte, j *lessor.Job) []byte {
	for _, f := range [...]struct {
		name  string
		value *string
	}{
		{`,"idempotency_key":`, j.IdempotencyKey},
		{`,"lock_key":`, j.LockKey},
		{`,"message":`, j.Message},
		{`,"error":`, j.Error},
		{`,"definition_id":`, j.DefinitionID},
	} {
		if f.value != nil {
			b = appendText(append(b, f.name...), *f.value)
		}
	}
	for _, f := range [...]struct {
		name  string
		value lessor.Instant
	}{{`,"run_at":`, j.RunAt}, {`,"retry_at":`, j.RetryAt}, {`,"tick_at":`, j.TickAt}} {
		if f.value != 0 {
			b = appendInstant(append(b, f.name...), f.value)
		}
	}
	if j.MaxRuntimeS != nil {
		b = appendInt(append(b, `,"max_runtime_s":`...), *j.MaxRuntimeS)
	}
	if j.Progress != nil {
		b = appendRare(append(b, `,"progress":`...), j.Progress)
	}
	if j.Question != nil {
		b = appendRare(append(b, `,"question":`...), j.Question)
	}
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{`,"interruptions":`, int64(j.Interruptions)},
		{`,"journal_entries":`, int64(j.JournalEntries)},
		{`,"messages_sent":`, j.MessagesSent},
		{`,"messages_seen":`, j.MessagesSeen},
	} {
		if f.value != 0 {
			b = appendInt(append(b, f.name...), f.value)
		}
	}
	for _, f := range [...]struct {
		name  string
		value []byte
	}{{`,"checkpoint":`, j.Checkpoint}, {`,"result":`, j.Result}} {
		if f.value != nil && string(f.value) != "null" {
			b = appendRaw(append(b, f.name...), f.value)
		}
	}
	for _, f := range [...]struct {
		name  string
		value bool
	}{{`,"unique":`, j.Unique}, {`,"cancel_requested":`, j.CancelRequested}, {`,"reattached":`, j.Reattached}} {
		if f.value {
			b = appendBool(append(b, f.name...), true)
		}
	}
	return b
}
