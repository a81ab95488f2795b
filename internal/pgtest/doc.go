// Package pgtest lends tests a PostgreSQL: a throwaway server, started once a test binary, with a database for each test that
// is copied from a migrated template.
//
// LESSOR_TEST_POSTGRES names another server instead, by a URL with the right to create databases. Without it initdb is looked
// for on PATH and in Debian's places, and installed with apt-get where we are root and may; where there is none a test fails
// and says what to do. Nothing is left behind: the server stops with the test binary, also when that is killed.
package pgtest
