package agent

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// modelName stands for the model calls among the names of tools. No tool can have this name.
const modelName = "(model)"

// ToolCounts are the counters of one tool.
type ToolCounts struct {
	// Tool is the name of the tool, or "(model)" for the model calls.
	Tool string
	// Calls counts the calls that have ended, and Failures those that ended with an error or a panic.
	Calls, Failures int64
	// Beats counts beats, including those of the executor.
	Beats int64
	// Extensions and ExtensionFailures count the extensions that beats caused.
	Extensions, ExtensionFailures int64
	// LongestSilence is the longest recent time between two beats. An outlier fades when it does not occur again.
	LongestSilence time.Duration
}

// counts are the running counters of one tool.
type counts struct {
	calls, failures, beats, extensions, extensionFailures atomic.Int64
	silence                                               atomic.Int64 // the longest of recent beats
	warned                                                atomic.Bool  // of a silence that no extension bridges
}

// beat counts one beat and the silence before it.
func (c *counts) beat(silence time.Duration) {
	c.beats.Add(1)
	for {
		longest := c.silence.Load()
		if int64(silence) <= longest || c.silence.CompareAndSwap(longest, int64(silence)) {
			return
		}
	}
}

func (c *counts) longest() time.Duration { return time.Duration(c.silence.Load()) }

// fade reduces the longest silence by an eighth, so that one outlier does not shorten the interval for ever.
func (c *counts) fade() {
	longest := c.silence.Load()
	c.silence.CompareAndSwap(longest, longest-longest/8)
}

// Counts returns the counters of the model and of each tool, in the order given.
func (e *Executor) Counts() []ToolCounts {
	all := make([]ToolCounts, 0, len(e.order))
	for _, name := range e.order {
		c := e.counts[name]
		all = append(all, ToolCounts{
			Tool: name, Calls: c.calls.Load(), Failures: c.failures.Load(), Beats: c.beats.Load(),
			Extensions:        c.extensions.Load(),
			ExtensionFailures: c.extensionFailures.Load(), LongestSilence: c.longest(),
		})
	}
	return all
}

// Metrics returns a Prometheus collector of the counters.
func (e *Executor) Metrics() prometheus.Collector { return metrics{e} }

type metrics struct{ executor *Executor }

var (
	toolLabel    = []string{"tool"}
	callsDesc    = prometheus.NewDesc("lessor_agent_tool_calls_total", "Tool calls that ended.", toolLabel, nil)
	failuresDesc = prometheus.NewDesc("lessor_agent_tool_failures_total",
		"Tool calls that ended in an error or a panic.", toolLabel, nil)
	beatsDesc    = prometheus.NewDesc("lessor_agent_beats_total", "Signs of progress.", toolLabel, nil)
	extendedDesc = prometheus.NewDesc("lessor_agent_extensions_total", "Leases extended by beats.", toolLabel, nil)
	refusedDesc  = prometheus.NewDesc("lessor_agent_extension_failures_total", "Extensions that failed.", toolLabel,
		nil)
	silenceDesc = prometheus.NewDesc("lessor_agent_longest_silence_seconds",
		"Longest recent time between two beats.", toolLabel, nil)
)

// Describe implements prometheus.Collector.
func (metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{callsDesc, failuresDesc, beatsDesc, extendedDesc, refusedDesc, silenceDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.executor.Counts() {
		count := func(d *prometheus.Desc, n int64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), c.Tool)
		}
		count(callsDesc, c.Calls)
		count(failuresDesc, c.Failures)
		count(beatsDesc, c.Beats)
		count(extendedDesc, c.Extensions)
		count(refusedDesc, c.ExtensionFailures)
		ch <- prometheus.MustNewConstMetric(silenceDesc, prometheus.GaugeValue, c.LongestSilence.Seconds(), c.Tool)
	}
}
