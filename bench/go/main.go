// Command go-bench offers pools and actors in Go to the comparison; ../PROTOCOL.md says how it is asked.
package main

import (
	"fmt"
	"os"
	"runtime"
)

// threads run all goroutines, of producers and of workers.
const threads = 2

func main() {
	runtime.GOMAXPROCS(threads)
	answers := os.Stdout
	// Whatever a library prints must not stand between the answers.
	os.Stdout = os.Stderr
	if err := newBench(systems()).serve(os.Stdin, answers); err != nil {
		fmt.Fprintln(os.Stderr, "go-bench:", err)
		os.Exit(1)
	}
}
