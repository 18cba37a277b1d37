package main

import (
	"fmt"
	"strings"
	"time"
)

// lostAfter is how long nothing may be handled before what is missing is taken for lost.
const lostAfter = 10 * time.Second

// bench answers requests.
type bench struct {
	systems []*system
	// calibrated when the program starts.
	calibration calibration
	lostAfter   time.Duration
	// repetitions that were begun.
	repetitions int
}

func newBench(systems []*system) *bench {
	return &bench{systems: systems, calibration: calibrate(), lostAfter: lostAfter}
}

// system is a candidate. What it cannot do is nil, and no row that needs it is offered.
type system struct {
	name    string
	version string
	what    string
	// unkeyed opens workers that take any message.
	unkeyed func(*repetition) (sender, error)
	// keyed opens workers that handle the messages of a key in order.
	keyed func(*repetition) (keyedSender, error)
	// calls opens workers that reply.
	calls func(*repetition) (caller, error)
	// full opens inboxes, fills them to this room, and stops the handlers at the gate.
	full func(inboxes, room int, gate *gate) (stopper, error)
}

// stopper is what runs for one repetition. It is stopped when all has been handled, and joins its workers.
type stopper interface {
	stop() error
}

type sender interface {
	stopper
	// send sends what a producer has to send, and returns when all of it has been accepted.
	send(share) error
}

type keyedSender interface {
	sender
	sendOne(Message) error
}

type caller interface {
	stopper
	// call makes the calls of one caller, one after the other.
	call(share) error
}

func systems() []*system {
	return []*system{channels(), hollywood(), ergoPool(), gopipe(), gopipeInTwo()}
}

func (s *system) rows() []string {
	var names []string
	for _, row := range allRows() {
		if row.needs(s) {
			names = append(names, row.name)
		}
	}
	return names
}

func (s *system) row(name string) (row, error) {
	for _, row := range allRows() {
		if row.name == name && row.needs(s) {
			return row, nil
		}
	}
	return row{}, fmt.Errorf("%s does not offer the row %q; it offers %s", s.name, name, strings.Join(s.rows(), ", "))
}
