// Package bench measures Agentbox beside the raw limit or the peer of each thing, in a module of its own so that no peer becomes a
// dependency.
//
// A benchmark that is compared has two sub-benchmarks, `ours` and `yardstick`, below any others:
//
//	BenchmarkAppend/writers=64/ours
//	BenchmarkAppend/writers=64/yardstick
//
// The program report pairs them and prints the table. goals.json has the goal of each pair.
package bench
