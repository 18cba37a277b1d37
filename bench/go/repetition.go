package main

import (
	"fmt"
	"runtime"
	"time"
)

const (
	// look is how often the counters are added up once all is sent. Before that nobody looks, as reading a counter takes its
	// cache line from the worker that writes it.
	look = 100 * time.Microsecond
	// settle is time for a message to be handled once too often.
	settle = 5 * time.Millisecond
	// stopWithin is how long workers with nothing to do may take to end.
	stopWithin = 5 * time.Second
)

// repetition is one run of one system in one row.
type repetition struct {
	messages  uint64
	counters  counters
	work      work
	also      func(Message)
	lostAfter time.Duration
	// ended is closed when nothing needs to be sent any more.
	ended chan struct{}
}

func newRepetition(workers int, messages uint64, lostAfter time.Duration) *repetition {
	drawAllKeys()
	return &repetition{
		messages:  messages,
		counters:  make(counters, workers),
		lostAfter: lostAfter,
		ended:     make(chan struct{}),
	}
}

func (r *repetition) workers() int {
	return len(r.counters)
}

func (r *repetition) worker(index int) *worker {
	return &worker{&r.counters[index], r.work, r.also}
}

// time runs a producer for each share, from their start until all has been handled, and ends the repetition. Where it fails,
// what hangs is left behind: it waits for something that does not come, and takes no processor from what runs next.
func (r *repetition) time(of stopper, shares []share, produce func(share) error) (time.Duration, error) {
	// What others have left behind is not collected at the cost of this one.
	runtime.GC()
	start := time.Now()
	sent := make(chan error, len(shares))
	for _, share := range shares {
		go func() { sent <- produce(share) }()
	}
	err := r.untilSent(sent, len(shares))
	if err == nil {
		err = r.untilHandled()
	}
	took := time.Since(start)
	close(r.ended)
	if err != nil {
		return 0, err
	}
	time.Sleep(settle)
	if err := within(stopWithin, of.stop); err != nil {
		return 0, err
	}
	return took, r.verify()
}

// untilSent waits for the producers, and fails when one does or when they wait and nothing is handled.
func (r *repetition) untilSent(sent <-chan error, producers int) error {
	seen := uint64(0)
	for producers > 0 {
		select {
		case err := <-sent:
			if err != nil {
				return err
			}
			producers--
		case <-time.After(r.lostAfter):
			now := r.counters.handled()
			if now == seen {
				return fmt.Errorf("senders hang: %d of %d messages were handled", now, r.messages)
			}
			seen = now
		}
	}
	return nil
}

func (r *repetition) untilHandled() error {
	seen, since := r.counters.handled(), time.Now()
	for seen < r.messages {
		time.Sleep(look)
		now := r.counters.handled()
		if now > seen {
			seen, since = now, time.Now()
		} else if time.Since(since) > r.lostAfter {
			return fmt.Errorf("lost: %d of %d messages were handled", seen, r.messages)
		}
	}
	return nil
}

// verify is to be called when the workers have ended.
func (r *repetition) verify() error {
	if handled := r.counters.handled(); handled != r.messages {
		return fmt.Errorf("%d messages were handled, but %d were sent", handled, r.messages)
	}
	// As all numbers are counted, their sum wraps around in the same way as that of what was handled.
	var expected uint64
	for seq := range r.messages {
		expected += seq
	}
	if r.counters.seqs() != expected {
		return fmt.Errorf("%d messages were handled, but not each of them once", r.messages)
	}
	return nil
}

// within fails when what is done takes longer, and does not wait for it.
func within(limit time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("workers have not ended within %s", limit)
	}
}
