package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/fxsml/gopipe/message"
	"github.com/fxsml/gopipe/message/match"
)

// kinds are what the attributes say of a message. The router only reads them, so all messages of a kind share theirs.
var kinds = []message.Attributes{{message.AttrType: "bench.first"}, {message.AttrType: "bench.second"}}

// gopipePools is a router, whose workers take from one channel. Routers with more than one pool have left gopipe with release
// 0.16: two pools are two routers behind a distributor, each for a kind of messages, with half of the workers.
func gopipePools(pools int, name, what string) *system {
	return &system{
		name:    name,
		version: versionOf("github.com/fxsml/gopipe/message"),
		what:    what,
		unkeyed: func(r *repetition) (sender, error) { return openRouted(r, pools) },
		full: func(workers, room int, gate *gate) (stopper, error) {
			return fullRouters(pools, workers, room, gate)
		},
	}
}

func gopipe() *system {
	return gopipePools(1, "gopipe 1 pool", "a message.Router, whose workers take from one channel with the room of all")
}

func gopipeInTwo() *system {
	return gopipePools(2, "gopipe 2 pools", "a message.Distributor by type in front of two message.Router, each with half of the workers")
}

// quiet is told what goes wrong, and not what is begun.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// routers have a pool each.
type routers struct {
	in    chan *message.Message
	kinds []message.Attributes
	// ended are closed when the workers have ended; nothing else comes from them.
	ended []<-chan *message.Message
}

func openRouters(pools, workers, room int, handle func(data any)) (*routers, error) {
	opened := &routers{in: make(chan *message.Message, workers*room), kinds: kinds[:pools]}
	inputs, err := opened.inputs()
	if err != nil {
		return nil, fmt.Errorf("starting a distributor: %w", err)
	}
	for index, kind := range opened.kinds {
		config := message.PipeConfig{Pool: message.PoolConfig{Workers: workers / pools}, Logger: quiet}
		ended, err := route(config, inputs[index], &handlerOf{kind, handle})
		if err != nil {
			return nil, fmt.Errorf("starting a router: %w", err)
		}
		opened.ended = append(opened.ended, ended)
	}
	return opened, nil
}

// inputs are what each router takes from.
func (s *routers) inputs() ([]<-chan *message.Message, error) {
	if len(s.kinds) == 1 {
		return []<-chan *message.Message{s.in}, nil
	}
	var inputs []<-chan *message.Message
	distributor := message.NewDistributor(message.DistributorConfig{Logger: quiet})
	for _, kind := range s.kinds {
		input, err := distributor.AddOutput(match.Types(typeOf(kind)))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, input)
	}
	_, err := distributor.Distribute(context.Background(), s.in)
	return inputs, err
}

func route(config message.PipeConfig, in <-chan *message.Message, to message.Handler) (<-chan *message.Message, error) {
	router := message.NewRouter(config)
	if err := router.AddHandler(to.EventType(), nil, to); err != nil {
		return nil, err
	}
	return router.Pipe(context.Background(), in)
}

// put waits for room. Kinds take turns.
func (s *routers) put(seq uint64, data any) {
	s.in <- &message.Message{Data: data, Attributes: s.kinds[seq%uint64(len(s.kinds))]}
}

// stop waits until the workers have handled what is queued.
func (s *routers) stop() error {
	close(s.in)
	for _, ended := range s.ended {
		<-ended
	}
	return nil
}

// handlerOf is the handler of a kind of messages.
type handlerOf struct {
	kind   message.Attributes
	handle func(data any)
}

func (h *handlerOf) EventType() string { return typeOf(h.kind) }

// NewInput is for messages that come as bytes.
func (h *handlerOf) NewInput() any { return nil }

func (h *handlerOf) Handle(_ context.Context, message *message.Message) ([]*message.Message, error) {
	h.handle(message.Data)
	return nil, nil
}

func typeOf(kind message.Attributes) string {
	return kind[message.AttrType].(string)
}

// routedMessages are messages by turns of the kinds.
type routedMessages struct{ *routers }

func openRouted(r *repetition, pools int) (routedMessages, error) {
	seats := newSeats(r)
	opened, err := openRouters(pools, r.workers(), room, func(data any) { seats.take(data.(Message)) })
	return routedMessages{opened}, err
}

func (s routedMessages) send(share share) error {
	for seq := share.from; seq < share.to; seq++ {
		s.put(seq, Message{Seq: seq, Key: seq})
	}
	return nil
}

// seats are workers for a handler that is not told which of them it is. A processor finds the one that it had before.
type seats struct {
	free sync.Pool
}

func newSeats(r *repetition) *seats {
	var made atomic.Uint64
	next := func() any { return r.worker(int(made.Add(1) % uint64(r.workers()))) }
	return &seats{sync.Pool{New: next}}
}

// take counts as if others had the same worker: the pool forgets some of what it has, and the workers are then given out again.
func (s *seats) take(message Message) {
	worker := s.free.Get().(*worker)
	worker.takeShared(message)
	s.free.Put(worker)
}

func fullRouters(pools, workers, room int, gate *gate) (stopper, error) {
	opened, err := openRouters(pools, workers, room, func(data any) { gate.pass(data.(Parcel)) })
	if err != nil {
		return nil, err
	}
	for seq := range workers {
		opened.put(uint64(seq), newParcel(7))
	}
	if err := gate.untilHeld(workers); err != nil {
		return nil, err
	}
	for seq := range workers * room {
		opened.put(uint64(seq), newParcel(7))
	}
	return opened, nil
}
