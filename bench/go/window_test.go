package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestNoMoreThanTheWindowIsInFlight(t *testing.T) {
	const messages = 3 * inFlight
	r := newRepetition(1, messages, time.Second)
	window, worker := window{of: r}, r.worker(0)
	var sent atomic.Uint64
	for _, share := range shares(producers, messages, nil) {
		go window.inChunks(share, func(from, to uint64) error {
			sent.Add(to - from)
			return nil
		})
	}
	most := uint64(0)
	for handled := uint64(0); handled < messages; {
		now := sent.Load()
		most = max(most, now-handled)
		// One at a time when there is nothing to do, so that the window is full most of the time.
		for ; handled < now && now-handled > inFlight/2; handled++ {
			worker.take(Message{Seq: handled})
		}
		time.Sleep(throttled)
		if now == messages {
			break
		}
	}
	if most > inFlight || most < inFlight/2 {
		t.Errorf("%d in flight, where %d may be", most, inFlight)
	}
}

func TestAProducerGivesUpWithItsRepetition(t *testing.T) {
	r := newRepetition(1, 2*inFlight, time.Second)
	ended := make(chan error, 1)
	go func() {
		nothing := func(uint64, uint64) error { return nil }
		ended <- (&window{of: r}).inChunks(share{to: 2 * inFlight}, nothing)
	}()
	close(r.ended)
	select {
	case err := <-ended:
		if !errors.Is(err, errGivenUp) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits for room")
	}
}
