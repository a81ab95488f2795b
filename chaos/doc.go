// Package chaos holds proofs against real processes: the server as users run it, killed while it works. It has tests only.
package chaos
