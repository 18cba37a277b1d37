//go:build !race

package main

import "sync/atomic"

// raced is whether the race detector is part of the program.
const raced = false

// add writes without an atomic instruction, which on this path would cost more than all else in the handler. The memory
// model lets a word be read while it is written: the reader gets one of the values that it had. Such a read says only when to look
// closely; the count that is judged is read after the workers have ended.
func (c *counter) add(seq uint64) {
	c.seqs += seq
	c.handled++
}

func (c *counter) load() uint64 {
	return atomic.LoadUint64(&c.handled)
}
