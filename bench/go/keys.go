package main

import (
	"math/bits"
	"sort"
	"sync"
)

const (
	// distinctKeys are drawn from.
	distinctKeys = 1_000_000
	// drawnKeys are drawn, and used again from the first on: drawing then costs the same whatever is sent.
	drawnKeys = 1 << 21
)

// keys is a sequence drawn before anything is timed. The most frequent key is 0: that of rank r is r-1.
type keys []uint64

func (k keys) of(seq uint64) uint64 {
	return k[seq%drawnKeys]
}

// random is SplitMix64 (Steele, Lea, Flood 2014): the same sequence in every run.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e37_79b9_7f4a_7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58_476d_1ce4_e5b9
	x = (x ^ x>>27) * 0x94d0_49bb_1331_11eb
	return x ^ x>>31
}

// unit is from 0 up to 1, exclusive.
func (r *random) unit() float64 {
	return float64(r.next()>>11) / (1 << 53)
}

// uniformKeys draws each key as often as any other.
var uniformKeys = sync.OnceValue(func() keys {
	seeded := random(1)
	drawn := make(keys, drawnKeys)
	for index := range drawn {
		drawn[index] = seeded.next() % distinctKeys
	}
	return drawn
})

// zipfKeys draws by Zipf's law with exponent 1: the key of rank r has a probability of 1/r over the sum of all.
var zipfKeys = sync.OnceValue(func() keys {
	cumulative := make([]float64, distinctKeys)
	sum := 0.0
	for index := range cumulative {
		sum += 1 / float64(index+1)
		cumulative[index] = sum
	}
	seeded := random(2)
	drawn := make(keys, drawnKeys)
	for index := range drawn {
		point := seeded.unit() * sum
		drawn[index] = uint64(sort.Search(distinctKeys-1, func(rank int) bool { return cumulative[rank] > point }))
	}
	return drawn
})

// drawAllKeys draws those of all rows: how often the collector runs depends on what the heap holds, and so would a figure on
// what was asked for before.
func drawAllKeys() {
	uniformKeys()
	zipfKeys()
}

// slotOf is the worker of a key among so many: the key is mixed by Fibonacci hashing, and its high half chooses.
func slotOf(key uint64, workers int) int {
	slot, _ := bits.Mul64(key*0x9e37_79b9_7f4a_7c15, uint64(workers))
	return int(slot)
}
