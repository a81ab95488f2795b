package dashboard

import (
	"net/http"

	"lessor/internal/token"
)

// view is a page that is ready to be rendered: its template and the data for it.
type view struct {
	title    string
	template string
	page     any
}

// pages are by path, each with the scope that the same call needs in the API.
var pages = map[string]struct {
	scope token.Scope
	show  func(*visit) (view, error)
}{
	"/{$}":                     {token.Read, (*visit).overview},
	"/jobs":                    {token.ReadJobs, (*visit).jobs},
	"/jobs/{id}":               {token.ReadJobs, (*visit).job},
	"/jobs/bulk/progress/{id}": {token.Submit, (*visit).bulkProgress},
	"/leases":                  {token.ReadLeases, (*visit).leases},
	"/workers":                 {token.Read, (*visit).workers},
	"/schedules":               {token.Read, (*visit).schedules},
	"/schedules/{id}":          {token.Read, (*visit).schedule},
	"/runs":                    {token.Read, (*visit).runs},
	"/tenants":                 {token.Read, (*visit).tenants},
	"/recovery":                {token.Administer, (*visit).showRecovery},
	"/audit":                   {token.ReadAudit, (*visit).audit},
}

// actions are the forms of the pages, by path. Each ends with a redirect, so that a reload does not repeat it. One that
// cannot be taken back asks first, at the same path.
var actions = map[string]struct {
	scope token.Scope
	do    func(*visit) error
	ask   func(*visit) (view, error)
}{
	"/jobs/{id}/cancel":         {token.Submit, (*visit).cancel, nil},
	"/jobs/{id}/force-cancel":   {token.Submit, (*visit).forceCancel, (*visit).askForceCancel},
	"/jobs/{id}/retry":          {token.Submit, (*visit).retry, nil},
	"/jobs/{id}/answer":         {token.Submit, (*visit).answerJob, nil},
	"/jobs/{id}/message":        {token.Submit, (*visit).messageJob, nil},
	"/jobs/bulk":                {token.Submit, (*visit).bulkStart, (*visit).bulkAsk},
	"/leases/{id}/revoke":       {token.Revoke, (*visit).revoke, (*visit).askRevoke},
	"/schedules/{id}/pause":     {token.Schedule, (*visit).pauseSchedule, nil},
	"/schedules/{id}/resume":    {token.Schedule, (*visit).resumeSchedule, nil},
	"/schedules/{id}/trigger":   {token.Schedule, (*visit).trigger, (*visit).askTrigger},
	"/schedules/{id}/reset":     {token.Schedule, (*visit).resetCircuit, nil},
	"/alerts/{id}/acknowledge":  {token.Schedule, (*visit).acknowledge, nil},
	"/tenants/{id}":             {token.SetTenant, (*visit).setTenant, nil},
	"/recovery/scan":            {token.Administer, (*visit).scan, nil},
	"/recovery/{id}/mark-dead":  {token.Administer, (*visit).markDead, (*visit).askMarkDead},
	"/recovery/{id}/resume-job": {token.Administer, (*visit).resumeJob, nil},
	"/drain":                    {token.Drain, (*visit).drain, (*visit).askDrain},
	"/drain/end":                {token.Drain, (*visit).endDrain, nil},
}

func (d *Dashboard) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for path, p := range pages {
		mux.HandleFunc("GET "+path, d.answer(p.scope, func(v *visit) error { return v.render(p.show) }))
	}
	for path, a := range actions {
		mux.HandleFunc("POST "+path, d.answer(a.scope, a.do))
		if a.ask != nil {
			mux.HandleFunc("GET "+path, d.answer(a.scope, func(v *visit) error { return v.render(a.ask) }))
		}
	}
	mux.HandleFunc("GET /jobs/{id}/download/{part}", d.answer(token.ReadJobs, (*visit).download))
	mux.HandleFunc("GET /schedules/{id}/download", d.answer(token.Read, (*visit).downloadSchedule))
	mux.HandleFunc("GET /login", d.answer(token.Public, (*visit).showLogin))
	mux.HandleFunc("POST /login", d.answer(token.Public, (*visit).login))
	mux.HandleFunc("POST /logout", d.answer(token.Public, (*visit).logout))
	mux.HandleFunc("POST /theme", d.answer(token.Public, (*visit).setTheme))
	mux.Handle("GET /static/", static())
	return mux
}
