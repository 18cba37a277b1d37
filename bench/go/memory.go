package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	fullInboxes = 256
	// filledWithin is ample time for a handler to begin with its message, or a pool to forward what it has.
	filledWithin = 10 * time.Second
	// quietAfter is when whatever still runs after the last message has ended.
	quietAfter = 300 * time.Millisecond
)

// gate holds handlers up.
type gate struct {
	held atomic.Int64
	open chan struct{}
}

func newGate() *gate {
	return &gate{open: make(chan struct{})}
}

// pass keeps a handler, and its parcel, until the gate is open.
func (g *gate) pass(parcel Parcel) {
	g.held.Add(1)
	<-g.open
	runtime.KeepAlive(parcel)
}

// untilHeld waits until so many handlers stand at the gate.
func (g *gate) untilHeld(handlers int) error {
	return await(filledWithin, func() error {
		if held := g.held.Load(); held < int64(handlers) {
			return fmt.Errorf("%d of %d handlers have begun", held, handlers)
		}
		return nil
	})
}

// await asks again until there is no error, or the last one is to be returned.
func await(limit time.Duration, ask func() error) error {
	for since := time.Now(); ; time.Sleep(look) {
		if err := ask(); err == nil || time.Since(since) > limit {
			return err
		}
	}
}

// fullMemory is what 256 full inboxes take, as a multiple of the payload. How many messages that are does not depend on the
// request. A parcel that a handler has in its hands is beside those in its inbox.
func fullMemory(b *bench, s *system, _ uint64) (float64, error) {
	if b.repetitions > 1 {
		return 0, errors.New("memory that was used before tells nothing: start the program anew for E-full, and ask for it first")
	}
	// The code of both ends is in memory before, and no part of the growth.
	if _, err := grown(s, 2, 10); err != nil {
		return 0, err
	}
	growth, err := grown(s, fullInboxes, room)
	payload := float64(fullInboxes * room * unsafe.Sizeof(Parcel{}))
	if err == nil && growth < payload {
		err = fmt.Errorf("resident memory grew by %.0f bytes for %.0f bytes of messages, so it was there before", growth, payload)
	}
	return growth / payload, err
}

// grown fills inboxes, and returns by how many bytes the resident memory has grown.
func grown(s *system, workers, room int) (float64, error) {
	before, err := resident()
	if err != nil {
		return 0, err
	}
	gate := newGate()
	filled, err := s.full(workers, room, gate)
	if err != nil {
		return 0, err
	}
	after, err := resident()
	if err != nil {
		return 0, err
	}
	close(gate.open)
	return after - before, within(stopWithin, filled.stop)
}

// resident is VmRSS in bytes, once all is quiet.
func resident() (float64, error) {
	time.Sleep(quietAfter)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading resident memory, which needs Linux: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib * 1024, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmRSS")
}
