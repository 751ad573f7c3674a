//go:build !race

package simulation_test

// shuffled says whether goroutines that are ready at the same moment go on in an order that is another one each time.
const shuffled = false
