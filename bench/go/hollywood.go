package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/anthdm/hollywood/actor"
)

// answeredWithin is how long a call may take: longer than a repetition may hang.
const answeredWithin = 20 * time.Second

// hollywood is a row of actors; its documentation has no pool. Inboxes have no bound, whatever their size is set to, so
// producers are throttled.
func hollywood() *system {
	return &system{
		name:    "hollywood",
		version: versionOf("github.com/anthdm/hollywood"),
		what:    "an actor per worker, round robin or by the key's hash, calls by Engine.Request; inboxes have no bound",
		unkeyed: func(r *repetition) (sender, error) { return openDealt(r) },
		keyed:   func(r *repetition) (keyedSender, error) { return openHashed(r) },
		calls:   func(r *repetition) (caller, error) { return openAsked(r) },
		full:    fullActors,
	}
}

// cast are actors with an engine of their own.
type cast struct {
	engine *actor.Engine
	actors []*actor.PID
}

func newCast(actors int, receiver func(index int) actor.Receiver) (*cast, error) {
	engine, err := actor.NewEngine(actor.NewEngineConfig())
	if err != nil {
		return nil, fmt.Errorf("starting an engine: %w", err)
	}
	opened := &cast{engine: engine}
	for index := range actors {
		producer := func() actor.Receiver { return receiver(index) }
		opened.actors = append(opened.actors, engine.Spawn(producer, "worker", actor.WithID(strconv.Itoa(index))))
	}
	return opened, nil
}

// stop waits until the actors have handled what is queued.
func (c *cast) stop() error {
	var ended []<-chan struct{}
	for _, pid := range c.actors {
		ended = append(ended, c.engine.Poison(pid).Done())
	}
	for _, ended := range ended {
		<-ended
	}
	return nil
}

// counting is an actor that handles messages.
type counting struct{ worker *worker }

func (c *counting) Receive(context *actor.Context) {
	if message, ok := context.Message().(*Message); ok {
		c.worker.take(*message)
	}
}

func newCounting(r *repetition) (*cast, error) {
	return newCast(r.workers(), func(index int) actor.Receiver { return &counting{r.worker(index)} })
}

// dealtActors are actors in turn.
type dealtActors struct {
	*cast
	window *window
}

func openDealt(r *repetition) (*dealtActors, error) {
	cast, err := newCounting(r)
	return &dealtActors{cast, &window{of: r}}, err
}

func (c *dealtActors) send(share share) error {
	next := share.firstOf(len(c.actors))
	return c.window.inChunks(share, func(from, to uint64) error {
		for seq := from; seq < to; seq++ {
			c.engine.Send(c.actors[next], &Message{Seq: seq, Key: seq})
			if next++; next == len(c.actors) {
				next = 0
			}
		}
		return nil
	})
}

// hashedActors are actors of which each key has one.
type hashedActors struct {
	*cast
	window *window
}

func openHashed(r *repetition) (*hashedActors, error) {
	cast, err := newCounting(r)
	return &hashedActors{cast, &window{of: r}}, err
}

func (c *hashedActors) send(share share) error {
	return c.window.inChunks(share, func(from, to uint64) error {
		for seq := from; seq < to; seq++ {
			c.sendTo(&Message{Seq: seq, Key: share.keys.of(seq)})
		}
		return nil
	})
}

// sendOne is not throttled: arrivals do not wait for anybody.
func (c *hashedActors) sendOne(message Message) error {
	c.sendTo(&message)
	return nil
}

func (c *hashedActors) sendTo(message *Message) {
	c.engine.Send(c.actors[slotOf(message.Key, len(c.actors))], message)
}

// answering is an actor that replies.
type answering struct{ worker *worker }

func (a *answering) Receive(context *actor.Context) {
	if message, ok := context.Message().(*Message); ok {
		context.Respond(a.worker.take(*message))
	}
}

type askedActors struct{ *cast }

func openAsked(r *repetition) (askedActors, error) {
	cast, err := newCast(r.workers(), func(index int) actor.Receiver { return &answering{r.worker(index)} })
	return askedActors{cast}, err
}

func (c askedActors) call(share share) error {
	for seq := share.from; seq < share.to; seq++ {
		to := c.actors[(uint64(share.index)+seq-share.from)%uint64(len(c.actors))]
		reply, err := c.engine.Request(to, &Message{Seq: seq, Key: seq}, answeredWithin).Result()
		if err != nil {
			return fmt.Errorf("call %d: %w", seq, err)
		}
		if err := check(seq, reply.(uint64)); err != nil {
			return err
		}
	}
	return nil
}

// gated is an actor that holds up at a gate.
type gated struct{ gate *gate }

func (g *gated) Receive(context *actor.Context) {
	if parcel, ok := context.Message().(*Parcel); ok {
		g.gate.pass(*parcel)
	}
}

func fullActors(workers, room int, gate *gate) (stopper, error) {
	opened, err := newCast(workers, func(int) actor.Receiver { return &gated{gate} })
	if err != nil {
		return nil, err
	}
	for _, pid := range opened.actors {
		parcel := newParcel(7)
		opened.engine.Send(pid, &parcel)
	}
	// An actor takes all that it finds at once: what comes after this stays in its inbox.
	if err := gate.untilHeld(workers); err != nil {
		return nil, err
	}
	for range room {
		for _, pid := range opened.actors {
			parcel := newParcel(7)
			opened.engine.Send(pid, &parcel)
		}
	}
	return opened, nil
}
