package main

import (
	"math"
	"testing"
)

func shareOf(keys keys, wanted func(uint64) bool) float64 {
	count := 0
	for seq := range uint64(drawnKeys) {
		if wanted(keys.of(seq)) {
			count++
		}
	}
	return float64(count) / drawnKeys
}

func TestZipfDrawsAKeyByTheInverseOfItsRank(t *testing.T) {
	harmonic := 0.0
	for rank := 1; rank <= distinctKeys; rank++ {
		harmonic += 1 / float64(rank)
	}
	for _, rank := range []uint64{1, 2, 10} {
		share := shareOf(zipfKeys(), func(key uint64) bool { return key == rank-1 })
		expected := 1 / (float64(rank) * harmonic)
		if math.Abs(share/expected-1) > 0.02 {
			t.Errorf("rank %d has %v of all, not %v", rank, share, expected)
		}
	}
	if above := shareOf(zipfKeys(), func(key uint64) bool { return key >= distinctKeys }); above != 0 {
		t.Errorf("%v of all are no keys", above)
	}
}

func TestUniformDrawsEachTenthOfTheKeysAsOften(t *testing.T) {
	for tenth := range uint64(10) {
		share := shareOf(uniformKeys(), func(key uint64) bool { return key/(distinctKeys/10) == tenth })
		if math.Abs(share-0.1) > 0.002 {
			t.Errorf("tenth %d has %v of all", tenth, share)
		}
	}
}

func TestKeysAreSpreadEvenlyOverWorkers(t *testing.T) {
	var of [keyedWorkers]int
	for key := range uint64(distinctKeys) {
		of[slotOf(key, keyedWorkers)]++
	}
	for slot, keys := range of {
		if even := float64(distinctKeys) / keyedWorkers; math.Abs(float64(keys)/even-1) > 0.05 {
			t.Errorf("slot %d has %d keys", slot, keys)
		}
	}
}
