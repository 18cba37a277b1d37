package main

// share is what one producer or caller sends: messages of these numbers.
type share struct {
	index    int
	from, to uint64
	// keys of the messages; without, the number is the key.
	keys keys
}

// shares divides messages among so many, without a gap.
func shares(among int, messages uint64, keys keys) []share {
	edge := func(index int) uint64 {
		return messages/uint64(among)*uint64(index) + messages%uint64(among)*uint64(index)/uint64(among)
	}
	all := make([]share, among)
	for index := range all {
		all[index] = share{index, edge(index), edge(index + 1), keys}
	}
	return all
}

// firstOf is the worker that the share begins its round with, so that producers do not walk side by side.
func (s share) firstOf(workers int) int {
	return workers * s.index / producers % workers
}
