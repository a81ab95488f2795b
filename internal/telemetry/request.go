package telemetry

import (
	"net/http"
	"slices"
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
			Help:    "Time to answer HTTP requests, without long polls and streams, which take as long as they were asked to.",
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
	held    // a long poll: its time says nothing, its failure does
	ignored // health, metrics, streams: not part of the service that is rated
)

// Request is one HTTP request on its way.
type Request struct {
	t     *Telemetry
	start time.Time
	how   int
	kind  string // of a held request
}

// Begin notes that a request arrived; it is in flight until End, Hold or Ignore.
func (t *Telemetry) Begin() *Request {
	t.window.enter()
	return &Request{t: t, start: time.Now()}
}

// Hold takes a request that is held open on purpose out of p95 and of those in flight. kind is "poll" or "stream". Called
// once at most.
func (r *Request) Hold(kind string) {
	r.Ignore()
	r.how, r.kind = held, kind
	r.t.http.waiting.WithLabelValues(kind).Inc()
}

// Ignore takes a request out of the window altogether.
func (r *Request) Ignore() {
	if r.how == counted {
		r.how = ignored
		r.t.window.leave()
	}
}

// End notes the answer. route is the route's pattern, "" if there was none.
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
	if route == "" {
		route = "none"
	}
	method = bounded(method)
	r.t.http.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if r.how != held {
		r.t.http.latency.WithLabelValues(route, method).Observe(took.Seconds())
	}
}

// bounded keeps callers from making up label values.
func bounded(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}, method) {
		return method
	}
	return "other"
}
