//go:build race

package main

import "sync/atomic"

// raced is whether the race detector is part of the program.
const raced = true

// add is atomic for the race detector, so that it can look for other races.
func (c *counter) add(seq uint64) {
	c.seqs += seq
	atomic.AddUint64(&c.handled, 1)
}

func (c *counter) load() uint64 {
	return atomic.LoadUint64(&c.handled)
}
