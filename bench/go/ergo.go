package main

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"ergo.services/ergo"
	"ergo.services/ergo/act"
	ergosystem "ergo.services/ergo/app/system"
	"ergo.services/ergo/gen"
)

const (
	// nodeName must have this form, though without a network nobody gets to know it.
	nodeName = "bench@localhost"
	// unbounded is the size of a mailbox without a bound.
	unbounded = 0
)

// ergoPool is a process that forwards to workers in turn. By key there are actors without a pool, which its documentation advises
// where messages depend on each other. What finds all mailboxes full is dropped, and the sender not told: so they have no
// bound, and producers are throttled.
func ergoPool() *system {
	return &system{
		name:    "ergo",
		version: ergo.FrameworkVersion.Release,
		what:    "act.Pool; by the key's hash an actor per worker; calls to the pool by processes; mailboxes have no bound",
		unkeyed: func(r *repetition) (sender, error) { return openForwarded(r) },
		keyed:   func(r *repetition) (keyedSender, error) { return openAddressed(r) },
		calls:   func(r *repetition) (caller, error) { return openCalled(r) },
		full:    fullPool,
	}
}

// localNode is a node without a network.
type localNode struct{ gen.Node }

func newNode() (localNode, error) {
	options := gen.NodeOptions{
		// A node that has not stopped by then ends the program.
		ShutdownTimeout: math.MaxInt64,
		// It would tell its makers about itself.
		Env:     map[gen.Env]any{ergosystem.DISABLE_METRICS: true},
		Network: gen.NetworkOptions{Mode: gen.NetworkModeDisabled},
	}
	options.Log.Level = gen.LogLevelWarning
	options.Log.DefaultLogger.DisableBanner = true
	node, err := ergo.StartNode(nodeName, options)
	if err != nil {
		return localNode{}, fmt.Errorf("starting a node: %w", err)
	}
	return localNode{node}, nil
}

func (n localNode) begin(process gen.ProcessBehavior) (gen.PID, error) {
	pid, err := n.Spawn(func() gen.ProcessBehavior { return process }, gen.ProcessOptions{})
	if err != nil {
		return pid, fmt.Errorf("spawning a process: %w", err)
	}
	return pid, nil
}

// stop does not wait for messages that are queued: the signal to end overtakes them.
func (n localNode) stop() error {
	n.Stop()
	// A node catches the signals that are to end the program, and would do so ever after.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	n.SetCTRLC(false)
	return nil
}

// handling is an actor that handles messages, and replies to calls.
type handling struct {
	act.Actor
	worker *worker
}

func (h *handling) HandleMessage(_ gen.PID, message any) error {
	h.worker.take(message.(Message))
	return nil
}

func (h *handling) HandleCall(_ gen.PID, _ gen.Ref, request any) (any, error) {
	return h.worker.take(request.(Message)), nil
}

// forwarding is the process of a pool. It makes its workers itself.
type forwarding struct {
	act.Pool
	options act.PoolOptions
}

func (f *forwarding) Init(...any) (act.PoolOptions, error) { return f.options, nil }

// pooled is a node with a pool.
type pooled struct {
	localNode
	pool gen.PID
}

func newPooled(workers, room int, worker func(index int) gen.ProcessBehavior) (pooled, error) {
	node, err := newNode()
	if err != nil {
		return pooled{}, err
	}
	made := 0
	next := func() gen.ProcessBehavior {
		made++
		return worker(made - 1)
	}
	options := act.PoolOptions{PoolSize: int64(workers), WorkerMailboxSize: int64(room), WorkerFactory: next}
	pool, err := node.begin(&forwarding{options: options})
	return pooled{node, pool}, err
}

func newHandling(r *repetition) (pooled, error) {
	return newPooled(r.workers(), unbounded, func(index int) gen.ProcessBehavior { return &handling{worker: r.worker(index)} })
}

// forwarded are messages to a pool.
type forwarded struct {
	pooled
	window *window
}

func openForwarded(r *repetition) (*forwarded, error) {
	pooled, err := newHandling(r)
	return &forwarded{pooled, &window{of: r}}, err
}

func (f *forwarded) send(share share) error {
	return f.window.inChunks(share, func(from, to uint64) error {
		for seq := from; seq < to; seq++ {
			if err := f.Send(f.pool, Message{Seq: seq, Key: seq}); err != nil {
				return fmt.Errorf("sending to the pool: %w", err)
			}
		}
		return nil
	})
}

// addressed are actors of which each key has one.
type addressed struct {
	localNode
	actors []gen.PID
	window *window
}

func openAddressed(r *repetition) (*addressed, error) {
	node, err := newNode()
	if err != nil {
		return nil, err
	}
	opened := &addressed{localNode: node, window: &window{of: r}}
	for index := range r.workers() {
		pid, err := node.begin(&handling{worker: r.worker(index)})
		if err != nil {
			return nil, err
		}
		opened.actors = append(opened.actors, pid)
	}
	return opened, nil
}

func (a *addressed) send(share share) error {
	return a.window.inChunks(share, func(from, to uint64) error {
		for seq := from; seq < to; seq++ {
			if err := a.sendOne(Message{Seq: seq, Key: share.keys.of(seq)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendOne is not throttled: arrivals do not wait for anybody.
func (a *addressed) sendOne(message Message) error {
	if err := a.Send(a.actors[slotOf(message.Key, len(a.actors))], message); err != nil {
		return fmt.Errorf("sending to an actor: %w", err)
	}
	return nil
}

// called is a pool that is called.
type called struct{ pooled }

func openCalled(r *repetition) (called, error) {
	pooled, err := newHandling(r)
	return called{pooled}, err
}

// call has a process make the calls, which costs less than calls by the node.
func (c called) call(share share) error {
	asking := &asking{pool: c.pool, share: share, ended: make(chan error, 1)}
	if _, err := c.begin(asking); err != nil {
		return err
	}
	return <-asking.ended
}

// asking is an actor that makes calls, then does nothing until its node stops.
type asking struct {
	act.Actor
	pool  gen.PID
	share share
	ended chan error
}

// Init has it begin with a message, as an actor that is not running yet may not call.
func (a *asking) Init(...any) error {
	return a.Send(a.PID(), nil)
}

func (a *asking) HandleMessage(gen.PID, any) error {
	a.ended <- a.callAll()
	return nil
}

func (a *asking) callAll() error {
	for seq := a.share.from; seq < a.share.to; seq++ {
		reply, err := a.CallWithTimeout(a.pool, Message{Seq: seq, Key: seq}, int(answeredWithin/time.Second))
		if err != nil {
			return fmt.Errorf("call %d: %w", seq, err)
		}
		if err := check(seq, reply.(uint64)); err != nil {
			return err
		}
	}
	return nil
}

// waiting is an actor that holds up at a gate.
type waiting struct {
	act.Actor
	gate *gate
}

func (w *waiting) HandleMessage(_ gen.PID, message any) error {
	w.gate.pass(message.(Parcel))
	return nil
}

// fullPool relies on workers having their turn: each gets a message to hold in its hands, then what its mailbox has room for.
func fullPool(workers, room int, gate *gate) (stopper, error) {
	opened, err := newPooled(workers, room, func(int) gen.ProcessBehavior { return &waiting{gate: gate} })
	if err != nil {
		return nil, err
	}
	if err := opened.fill(workers); err != nil {
		return nil, err
	}
	if err := gate.untilHeld(workers); err != nil {
		return nil, err
	}
	if err := opened.fill(workers * room); err != nil {
		return nil, err
	}
	return opened, opened.untilForwarded(workers * (1 + room))
}

func (p pooled) fill(parcels int) error {
	for range parcels {
		if err := p.Send(p.pool, newParcel(7)); err != nil {
			return fmt.Errorf("sending to the pool: %w", err)
		}
	}
	return nil
}

// untilForwarded waits until the pool's process has nothing left, and fails where it has dropped some.
func (p pooled) untilForwarded(parcels int) error {
	return await(filledWithin, func() error {
		said, err := p.Inspect(p.pool)
		if err != nil {
			return fmt.Errorf("inspecting the pool: %w", err)
		}
		if forwarded := said["messages_forwarded"]; forwarded != strconv.Itoa(parcels) {
			return fmt.Errorf("%s of %d messages were forwarded, %s dropped", forwarded, parcels, said["messages_unhandled"])
		}
		return nil
	})
}
