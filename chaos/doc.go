// Package chaos contains tests with real processes: it runs the server as users do, and breaks something while it
// works.
//
// A load of submitters and workers calls real servers over HTTP; every call is noted with its begin, its end and its
// answer (history_test.go). Afterwards porcupine looks for an order of each job's calls that explains all of their
// answers (model_test.go), and the records are added up (sums_test.go). README.md lists the bugs that were found.
package chaos
