package main

import (
	"math"
	"testing"
	"time"
)

func TestCalibratedWorkTakesAboutAsLongAsAskedFor(t *testing.T) {
	calibration := calibrate()
	for _, nanos := range []int{75, 460, 2400} {
		work, best := calibration.work(nanos), math.Inf(1)
		for range 50 {
			start := time.Now()
			for seed := range uint64(1_000) {
				work.run(seed)
			}
			best = min(best, float64(time.Since(start).Nanoseconds())/1_000)
		}
		// A processor begins with the next message before it is done with one whose work is short.
		if best < 0.5*float64(nanos) || best > 1.7*float64(nanos) {
			t.Errorf("%d ns of work took %.0f ns", nanos, best)
		}
	}
	if calibration.work(0).turns != 0 {
		t.Error("no work is some")
	}
}

func TestLongerWorkIsAsMuchLonger(t *testing.T) {
	calibration := calibration{nanosPerTurn: 1.5}
	if turns := calibration.work(2400).turns; turns != 1600 {
		t.Errorf("%d turns", turns)
	}
}
