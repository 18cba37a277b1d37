package main

import (
	"time"
	"unsafe"
)

// Message is what all rows but E send: 48 bytes.
type Message struct {
	Seq uint64
	Key uint64
	// Due is when it was to be sent, from the start on, and Sleeps whether its handler does: of row C alone.
	Due    time.Duration
	Sleeps bool
	pad    pad
}

// pad is the rest of a message. Fields are passed in registers, which the elements of an array are not.
type pad struct{ a, b uint64 }

// Parcel is what row E queues.
type Parcel [200]byte

// newParcel is not all zero: Go would not allocate such a value, but refer to one that all share.
//
//go:noinline
func newParcel(fill byte) (parcel Parcel) {
	for index := range parcel {
		parcel[index] = fill
	}
	return parcel
}

var _ = [1]struct{}{}[unsafe.Sizeof(Message{})-48]
