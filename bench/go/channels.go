package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// room is what each worker's inbox holds, where it can be bounded.
const room = 1_000

// channels is what Go programs do without a library: a buffered channel and a goroutine for each worker. The sender chooses
// the channel.
func channels() *system {
	return &system{
		name:    "go channels",
		version: strings.TrimPrefix(runtime.Version(), "go"),
		what:    "a buffered channel and goroutine per worker, round robin or by the key's hash; reply channels from a sync.Pool",
		unkeyed: func(r *repetition) (sender, error) { return dealt{openMessages(r)}, nil },
		keyed:   func(r *repetition) (keyedSender, error) { return hashed{openMessages(r)}, nil },
		calls:   func(r *repetition) (caller, error) { return openQuestions(r), nil },
		full:    fullChannels,
	}
}

// inboxes are channels, each with a goroutine that takes from it.
type inboxes[T any] struct {
	of    []chan T
	ended sync.WaitGroup
}

func openInboxes[T any](workers, room int, takeAll func(index int, inbox <-chan T)) *inboxes[T] {
	opened := &inboxes[T]{of: make([]chan T, workers)}
	for index := range opened.of {
		inbox := make(chan T, room)
		opened.of[index] = inbox
		opened.ended.Go(func() { takeAll(index, inbox) })
	}
	return opened
}

// stop waits until the workers have handled what is queued.
func (i *inboxes[T]) stop() error {
	for _, inbox := range i.of {
		close(inbox)
	}
	i.ended.Wait()
	return nil
}

func openMessages(r *repetition) *inboxes[Message] {
	return openInboxes(r.workers(), room, func(index int, inbox <-chan Message) {
		worker := r.worker(index)
		for message := range inbox {
			worker.take(message)
		}
	})
}

// dealt are inboxes in turn.
type dealt struct{ *inboxes[Message] }

func (d dealt) send(share share) error {
	next := share.firstOf(len(d.of))
	for seq := share.from; seq < share.to; seq++ {
		d.of[next] <- Message{Seq: seq, Key: seq}
		if next++; next == len(d.of) {
			next = 0
		}
	}
	return nil
}

// hashed are inboxes of which each key has one.
type hashed struct{ *inboxes[Message] }

func (h hashed) send(share share) error {
	for seq := share.from; seq < share.to; seq++ {
		key := share.keys.of(seq)
		h.of[slotOf(key, len(h.of))] <- Message{Seq: seq, Key: key}
	}
	return nil
}

func (h hashed) sendOne(message Message) error {
	h.of[slotOf(message.Key, len(h.of))] <- message
	return nil
}

// question is a message and where its reply goes.
type question struct {
	Message
	reply chan uint64
}

type questions struct {
	*inboxes[question]
	// replies are channels of callers that have their reply, so that a call need not make one.
	replies sync.Pool
}

func openQuestions(r *repetition) *questions {
	opened := &questions{replies: sync.Pool{New: func() any { return make(chan uint64, 1) }}}
	opened.inboxes = openInboxes(r.workers(), room, func(index int, inbox <-chan question) {
		worker := r.worker(index)
		for asked := range inbox {
			asked.reply <- worker.take(asked.Message)
		}
	})
	return opened
}

func (q *questions) call(share share) error {
	next := share.index % len(q.of)
	for seq := share.from; seq < share.to; seq++ {
		reply := q.replies.Get().(chan uint64)
		q.of[next] <- question{Message{Seq: seq, Key: seq}, reply}
		if err := check(seq, <-reply); err != nil {
			return err
		}
		q.replies.Put(reply)
		if next++; next == len(q.of) {
			next = 0
		}
	}
	return nil
}

func check(seq, reply uint64) error {
	if reply != replyTo(seq) {
		return fmt.Errorf("call %d got the reply %d", seq, reply)
	}
	return nil
}

func fullChannels(workers, room int, gate *gate) (stopper, error) {
	opened := openInboxes(workers, room, func(_ int, inbox <-chan Parcel) {
		for parcel := range inbox {
			gate.pass(parcel)
		}
	})
	for _, inbox := range opened.of {
		inbox <- newParcel(7)
	}
	if err := gate.untilHeld(workers); err != nil {
		return nil, err
	}
	for range room {
		for _, inbox := range opened.of {
			inbox <- newParcel(7)
		}
	}
	return opened, nil
}
