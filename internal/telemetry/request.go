package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type httpMetrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	waiting  *prometheus.GaugeVec
}

func newHTTPMetrics() httpMetrics {
	return httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "lessor", Name: "http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "method", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "lessor", Name: "http_request_duration_seconds",
			Help:    "Time to answer HTTP requests, without long polls and streams.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 15), // 0.25 ms to 4 s
		}, []string{"route", "method"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "lessor", Name: "http_held_requests", Help: "Requests held open now.",
		}, []string{"kind"}),
	}
}

func (m *httpMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.latency, m.waiting}
}

// How a request counts in the window of the busy rating.
const (
	counted = iota
	held    // a long poll: only its status counts, not its duration
	ignored // health, metrics, streams: not part of the rated service
)

// Request is one HTTP request that is not answered yet.
type Request struct {
	t     *Telemetry
	start time.Time
	how   int
	kind  string // kind of a held request
}

// Begin counts a request that arrived. It is in flight until End, Hold or Ignore.
func (t *Telemetry) Begin() *Request {
	t.window.enter()
	return &Request{t: t, start: time.Now()}
}

// Hold excludes a request that is held open on purpose from p95 and from those in flight. kind is "poll" or "stream".
// Call it at most once.
func (r *Request) Hold(kind string) {
	r.Ignore()
	r.how, r.kind = held, kind
	r.t.http.waiting.WithLabelValues(kind).Inc()
}

// Ignore excludes a request from the window.
func (r *Request) Ignore() {
	if r.how == counted {
		r.how = ignored
		r.t.window.leave()
	}
}

// End counts the answer. route is the pattern of the route, "" if none matched.
func (r *Request) End(route, method string, status int) {
	now := time.Now()
	took := now.Sub(r.start)
	switch r.how {
	case counted:
		r.t.window.leave()
		r.t.window.add(now, took, status)
	case held:
		r.t.http.waiting.WithLabelValues(r.kind).Dec()
		if r.kind == "poll" {
			r.t.window.addHeld(now, status)
		}
	}
	route, method = cmp.Or(route, "none"), bounded(method)
	r.t.http.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if r.how != held {
		r.t.http.latency.WithLabelValues(route, method).Observe(took.Seconds())
	}
}

// bounded returns the label value of a method: callers must not be able to invent values.
func bounded(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "other"
}
