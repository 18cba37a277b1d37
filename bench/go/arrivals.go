package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

const (
	// arrivalsPerSecond is the mean of the Poisson arrivals of row C.
	arrivalsPerSecond = 20_000
	// One message in oneSleepsIn sleeps in its handler.
	oneSleepsIn = 100
	sleeps      = 20 * time.Millisecond
	// coldFromRank is the first rank whose keys are rare enough not to meet themselves.
	coldFromRank = 1_000
)

// drawArrivals draws messages with the times at which they are due: the same in every run.
func drawArrivals(messages uint64, keys keys) []Message {
	seeded, due := random(3), 0.0
	drawn := make([]Message, messages)
	for seq := range drawn {
		due -= math.Log(1-seeded.unit()) / arrivalsPerSecond
		drawn[seq] = Message{
			Seq:    uint64(seq),
			Key:    keys.of(uint64(seq)),
			Due:    time.Duration(due * float64(time.Second)),
			Sleeps: seeded.next()%oneSleepsIn == 0,
		}
	}
	return drawn
}

// sheet notes how long each message took, from when it was due.
type sheet struct {
	start time.Time
	took  []time.Duration
}

// handle is what the handler does, beside counting.
func (s *sheet) handle(message Message) {
	if message.Sleeps {
		time.Sleep(sleeps)
	}
	s.took[message.Seq] = time.Since(s.start) - message.Due
}

// play sends each message when it is due, whether or not those before it have been handled.
func (s *sheet) play(arrivals []Message, send func(Message) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wakePrecisely()
	s.start = time.Now()
	for _, message := range arrivals {
		s.waitUntil(message.Due)
		if err := send(message); err != nil {
			return err
		}
	}
	return nil
}

// waitUntil sleeps in the system: where nothing else runs, a timer of the runtime may be a millisecond late.
func (s *sheet) waitUntil(due time.Duration) {
	for {
		left := due - time.Since(s.start)
		if left <= 0 {
			return
		}
		span := syscall.NsecToTimespec(left.Nanoseconds())
		// When a signal cuts it short, the loop sleeps again.
		_ = syscall.Nanosleep(&span, nil)
	}
}

// wakePrecisely asks for sleeps of this thread that are a microsecond late instead of fifty. It is left at that where the
// system does not let it: sleeping is then less precise, for all systems of this program alike.
func wakePrecisely() {
	_ = os.WriteFile("/proc/thread-self/timerslack_ns", []byte("1000"), 0)
}

// latency is the 99th percentile, in microseconds, of messages that neither sleep nor have a frequent key.
func latency(b *bench, s *system, messages uint64) (float64, error) {
	arrivals := drawArrivals(messages, zipfKeys())
	sheet := &sheet{took: make([]time.Duration, messages)}
	r := newRepetition(keyedWorkers, messages, b.lostAfter)
	r.also = sheet.handle
	to, err := s.keyed(r)
	if err != nil {
		return 0, err
	}
	play := func(share) error { return sheet.play(arrivals, to.sendOne) }
	if _, err := r.time(to, shares(1, messages, nil), play); err != nil {
		return 0, err
	}
	cold := sheet.cold(arrivals)
	if len(cold) == 0 {
		return 0, fmt.Errorf("none of %d messages neither sleeps nor has a frequent key: ask for more", messages)
	}
	return micros(percentile(cold, 0.99)), nil
}

// cold are the times of messages that have no reason to wait.
func (s *sheet) cold(arrivals []Message) []time.Duration {
	var times []time.Duration
	for _, message := range arrivals {
		if !message.Sleeps && message.Key+1 >= coldFromRank {
			times = append(times, s.took[message.Seq])
		}
	}
	return times
}

// percentile is the time that this part of all does not exceed. It sorts them.
func percentile(times []time.Duration, part float64) time.Duration {
	slices.Sort(times)
	rank := int(math.Ceil(float64(len(times)) * part))
	return times[max(rank, 1)-1]
}

func micros(time time.Duration) float64 {
	return float64(time.Nanoseconds()) / 1e3
}
