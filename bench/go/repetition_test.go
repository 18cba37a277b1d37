package main

import (
	"errors"
	"strings"
	"testing"
)

// faulty is a system of one worker that handles what its function says of each message.
type faulty struct {
	worker *worker
	handle func(*worker, Message) error
}

func (f faulty) stop() error { return nil }

func (f faulty) send(share share) error {
	for seq := share.from; seq < share.to; seq++ {
		if err := f.handle(f.worker, Message{Seq: seq}); err != nil {
			return err
		}
	}
	return nil
}

// askFaulty has the first of two producers meet a fault at message 3, and returns what is said about it.
func askFaulty(t *testing.T, handle func(*worker, Message) error) string {
	t.Helper()
	sound := func(worker *worker, message Message) error {
		worker.take(message)
		return nil
	}
	open := func(r *repetition) (sender, error) {
		return faultyPair{faulty{r.worker(0), handle}, faulty{r.worker(1), sound}}, nil
	}
	line := `{"system": "faulty", "row": "A4", "messages": 20}`
	answered := answers(t, []*system{{name: "faulty", unkeyed: open}}, line)
	said, _ := answered[0]["error"].(string)
	return said
}

// faultyPair has a worker for each producer.
type faultyPair [2]faulty

func (f faultyPair) stop() error { return nil }

func (f faultyPair) send(share share) error { return f[share.index].send(share) }

func TestAFaultIsAnErrorThatNamesIt(t *testing.T) {
	faults := map[string]func(*worker, Message) error{
		"lost: 19 of 20 messages were handled": func(w *worker, m Message) error {
			if m.Seq != 3 {
				w.take(m)
			}
			return nil
		},
		"21 messages were handled, but 20 were sent": func(w *worker, m Message) error {
			if w.take(m); m.Seq == 3 {
				w.take(m)
			}
			return nil
		},
		"20 messages were handled, but not each of them once": func(w *worker, m Message) error {
			if m.Seq == 3 {
				m.Seq = 4
			}
			w.take(m)
			return nil
		},
		"senders hang: 13 of 20 messages were handled": func(w *worker, m Message) error {
			if m.Seq == 3 {
				select {}
			}
			w.take(m)
			return nil
		},
		"refused": func(_ *worker, m Message) error {
			if m.Seq == 3 {
				return errors.New("refused")
			}
			return nil
		},
	}
	for says, fault := range faults {
		if said := askFaulty(t, fault); said != says {
			t.Errorf("%q, not %q", said, says)
		}
	}
}

func TestWorkersThatDoNotEndAreAnError(t *testing.T) {
	err := within(look, func() error { select {} })
	if err == nil || !strings.Contains(err.Error(), "have not ended within") {
		t.Errorf("%v", err)
	}
}

func TestAWrongReplyIsAnError(t *testing.T) {
	if err := check(7, replyTo(7)); err != nil {
		t.Error(err)
	}
	if err := check(7, replyTo(8)); err == nil {
		t.Error("the reply to another call is taken for one's own")
	}
}

func TestSharesCoverAllMessagesWithoutAGap(t *testing.T) {
	for _, messages := range []uint64{1, 2, 63, 64, 65, 1_000_003} {
		for _, among := range []int{1, 2, 64} {
			next := uint64(0)
			for _, share := range shares(among, messages, nil) {
				if share.from != next || share.to < share.from {
					t.Fatalf("%d among %d: %d to %d after %d", messages, among, share.from, share.to, next)
				}
				next = share.to
			}
			if next != messages {
				t.Fatalf("%d among %d end at %d", messages, among, next)
			}
		}
	}
}
