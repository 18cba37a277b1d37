package main

import "fmt"

const (
	producers    = 2
	keyedWorkers = 256
	callWorkers  = 4
)

// row is a line of the comparison.
type row struct {
	name string
	// needs says whether a system can do what the row asks for.
	needs func(*system) bool
	run   func(*bench, *system, uint64) (float64, error)
}

func allRows() []row {
	var all []row
	for _, workers := range []int{4, 256} {
		for _, nanos := range []int{0, 75, 460, 2400} {
			all = append(all, unkeyedRow(workers, nanos))
		}
	}
	return append(all,
		keyedRow("B-uniform", uniformKeys),
		keyedRow("B-zipf", zipfKeys),
		row{"C", func(s *system) bool { return s.keyed != nil }, latency},
		callRow(1),
		callRow(64),
		row{"E-full", func(s *system) bool { return s.full != nil }, fullMemory},
	)
}

func unkeyedRow(workers, nanos int) row {
	name := fmt.Sprintf("A%d", workers)
	if nanos > 0 {
		name += fmt.Sprintf("-%dns", nanos)
	}
	run := func(b *bench, s *system, messages uint64) (float64, error) {
		r := newRepetition(workers, messages, b.lostAfter)
		r.work = b.calibration.work(nanos)
		to, err := s.unkeyed(r)
		return r.throughput(to, err, nil)
	}
	return row{name, func(s *system) bool { return s.unkeyed != nil }, run}
}

func keyedRow(name string, draw func() keys) row {
	run := func(b *bench, s *system, messages uint64) (float64, error) {
		r := newRepetition(keyedWorkers, messages, b.lostAfter)
		to, err := s.keyed(r)
		return r.throughput(to, err, draw())
	}
	return row{name, func(s *system) bool { return s.keyed != nil }, run}
}

func callRow(callers int) row {
	run := func(b *bench, s *system, messages uint64) (float64, error) {
		r := newRepetition(callWorkers, messages, b.lostAfter)
		to, err := s.calls(r)
		if err != nil {
			return 0, err
		}
		took, err := r.time(to, shares(callers, messages, nil), to.call)
		return float64(took.Nanoseconds()) / float64(messages), err
	}
	return row{fmt.Sprintf("D%d", callers), func(s *system) bool { return s.calls != nil }, run}
}

// throughput is in millions of messages a second.
func (r *repetition) throughput(to sender, failed error, keys keys) (float64, error) {
	if failed != nil {
		return 0, failed
	}
	took, err := r.time(to, shares(producers, r.messages, keys), to.send)
	return float64(r.messages) / took.Seconds() / 1e6, err
}
