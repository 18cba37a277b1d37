package main

import (
	"sync"
	"testing"
)

func TestMessagesOfAKeyAreHandledInTheOrderInWhichAProducerSentThem(t *testing.T) {
	const messages = 100_000
	for _, system := range systems() {
		if system.keyed == nil || racesByItself(system.name) {
			continue
		}
		var lock sync.Mutex
		type line struct {
			key    uint64
			second bool
		}
		next, disordered := map[line]uint64{}, 0
		r := newRepetition(keyedWorkers, messages, lostAfter)
		r.also = func(message Message) {
			lock.Lock()
			defer lock.Unlock()
			of := line{message.Key, message.Seq >= messages/2}
			if message.Seq < next[of] {
				disordered++
			}
			next[of] = message.Seq + 1
		}
		to, err := system.keyed(r)
		if _, err = r.throughput(to, err, zipfKeys()); err != nil {
			t.Errorf("%s: %v", system.name, err)
		}
		if disordered > 0 {
			t.Errorf("%s: %d of %d messages came late", system.name, disordered, messages)
		}
	}
}
