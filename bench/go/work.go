package main

import (
	"math"
	"math/bits"
	"runtime"
	"time"
)

const (
	calibrationTurns = 2_000_000
	// calibrationRuns are as many as needed for one that nothing disturbs.
	calibrationRuns = 9
)

// work is what a handler computes for each message.
type work struct {
	turns uint64
}

func (w work) run(seed uint64) {
	if w.turns > 0 {
		runtime.KeepAlive(turn(w.turns, seed))
	}
}

// turn depends on itself in each step, so that neither compiler nor processor can shorten it, and touches no memory.
//
//go:noinline
func turn(turns, x uint64) uint64 {
	for i := range turns {
		x = bits.RotateLeft64((x^i)*6_364_136_223_846_793_005, 17)
	}
	return x
}

// calibration is how long a turn takes here.
type calibration struct {
	nanosPerTurn float64
}

// calibrate takes the best of several measurements, as everything that disturbs makes it longer.
func calibrate() calibration {
	best := math.Inf(1)
	for range calibrationRuns {
		start := time.Now()
		runtime.KeepAlive(turn(calibrationTurns, 1))
		best = min(best, float64(time.Since(start).Nanoseconds())/calibrationTurns)
	}
	return calibration{best}
}

// work takes so long; none for 0.
func (c calibration) work(nanos int) work {
	return work{uint64(math.Round(float64(nanos) / c.nanosPerTurn))}
}
