// Package yardstick is what bare technologies do on this machine: a committer on SQLite that does nothing else, and a server of
// PostgreSQL in a folder of its own. The benchmarks and the load tool stand beside them.
package yardstick
