// Package rules holds every decision of the scheduler as a pure function: values in, with now as an argument, values
// out. It reads no clock, does no I/O and keeps no state; randomness is an argument too.
//
// The scheduler calls it between loading and saving; stores and transport never decide. Each boundary has both its
// sides in a table test, and record_test.go replays random histories.
package rules
