// Package chaos contains tests with real processes: it runs the server as users do, and kills it while it works.
package chaos
