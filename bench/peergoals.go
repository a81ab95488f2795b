package main

import (
	"bytes"
	"fmt"
)

// peerGoal is what Lessor is to reach beside a peer: a figure of the one over the same figure of the other.
type peerGoal struct {
	what, ours, theirs string
	of                 func(*peerFigures) float64 // 0 = it has none
	least, most        float64                    // the bound; one of them is 0
}

var peerGoals = []peerGoal{
	{
		what: "whole life on PostgreSQL, SDK over HTTP", ours: "Lessor, PostgreSQL", theirs: riverPeer, of: lifeRate,
		least: 2,
	},
	{
		what: "whole life on SQLite, SDK over HTTP", ours: "Lessor, SQLite", theirs: "River, SQLite", of: lifeRate,
		least: 10,
	},
	{
		what: "whole life on SQLite, SDK over HTTP", ours: "Lessor, SQLite", theirs: "beanstalkd -f 0", of: lifeRate,
		least: 1.5,
	},
	{
		what: "batches in process on PostgreSQL", ours: "Lessor in process, PostgreSQL", theirs: riverPeer,
		of:    lifeRate,
		least: 3.5,
	},
	{what: "heartbeats in calls of 100", ours: "Lessor, SQLite", theirs: "etcd leases", of: beatRate, least: 1},
	{what: "submit to start, p50", ours: "Lessor, SQLite", theirs: "beanstalkd -f 0", of: startP50, most: 2},
	{what: "submit to start, p99", ours: "Lessor, SQLite", theirs: "beanstalkd -f 0", of: startP99, most: 2},
}

func lifeRate(f *peerFigures) float64 { return rateOf(f.life) }
func beatRate(f *peerFigures) float64 { return rateOf(f.beats) }
func startP50(f *peerFigures) float64 { return f.p50 }
func startP99(f *peerFigures) float64 { return f.p99 }

func rateOf(rounds []cost) float64 {
	if len(rounds) == 0 {
		return 0
	}
	return median(rounds, cost.rate)
}

// writePeerGoals writes which goals were reached, as far as both sides have the figure.
func writePeerGoals(w *bytes.Buffer, all []*peerFigures) {
	byName := map[string]*peerFigures{}
	for _, f := range all {
		byName[f.name] = f
	}
	fmt.Fprintln(w, "\n| goal | beside | times | bound | |\n|---|---|--:|--:|---|")
	for _, g := range peerGoals {
		ours, theirs := byName[g.ours], byName[g.theirs]
		if ours == nil || theirs == nil || g.of(ours) == 0 || g.of(theirs) == 0 {
			continue
		}
		times, bound, reached := g.of(ours)/g.of(theirs), fmt.Sprintf("≥ %.1f", g.least), "reached"
		if g.most > 0 {
			bound = fmt.Sprintf("≤ %.1f", g.most)
		}
		if times < g.least || g.most > 0 && times > g.most {
			reached = "**not reached**"
		}
		fmt.Fprintf(w, "| %s: %s | %s | %.2f | %s | %s |\n", g.ours, g.what, g.theirs, times, bound, reached)
	}
}
