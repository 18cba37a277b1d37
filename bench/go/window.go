package main

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	// inFlight is the bound for what producers have sent and workers have not handled, where inboxes have none.
	inFlight = 65_536
	// atOnce are taken from the window together, so that adding up the counters costs little. Small against the window.
	atOnce = 256
	// throttled is how long a producer sleeps when the window is full: a small part of the time it takes to empty it.
	throttled = 50 * time.Microsecond
)

var errGivenUp = errors.New("the repetition was given up")

// window keeps producers from sending too far ahead of the workers. What has been taken from it counts as in flight before
// it is sent, so there is never more in flight than the bound; and as only 2 times 256 can be taken and not sent, producers
// always see it empty in the end.
type window struct {
	of    *repetition
	taken atomic.Uint64
}

// inChunks has a share sent in chunks, each when there is room for it.
func (w *window) inChunks(share share, send func(from, to uint64) error) error {
	for from := share.from; from < share.to; {
		to := min(from+atOnce, share.to)
		if err := w.take(to - from); err != nil {
			return err
		}
		if err := send(from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (w *window) take(messages uint64) error {
	taken := w.taken.Add(messages)
	for taken > w.of.counters.handled()+inFlight {
		select {
		case <-w.of.ended:
			return errGivenUp
		default:
			time.Sleep(throttled)
		}
	}
	return nil
}
