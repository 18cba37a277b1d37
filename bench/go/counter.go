package main

import "sync/atomic"

// counter counts what one worker has handled. The worker is its only writer, and it has a cache line and its prefetched
// neighbour for itself, so that counting costs next to nothing.
type counter struct {
	handled uint64
	// seqs is the sum of the numbers of those messages: it tells one that came twice from one that came once.
	seqs uint64
	_    [112]byte
}

// addShared is for a counter that has more than one writer.
func (c *counter) addShared(seq uint64) {
	atomic.AddUint64(&c.seqs, seq)
	atomic.AddUint64(&c.handled, 1)
}

// counters are one for each worker.
type counters []counter

// handled may be asked at any time.
func (c counters) handled() uint64 {
	var sum uint64
	for index := range c {
		sum += c[index].load()
	}
	return sum
}

// seqs is to be asked when the workers have ended.
func (c counters) seqs() uint64 {
	var sum uint64
	for index := range c {
		sum += c[index].seqs
	}
	return sum
}
