package main

// worker is what each system's handler does with a message.
type worker struct {
	counter *counter
	work    work
	// also is done by the rows that do more than count.
	also func(Message)
}

// take handles a message and returns the reply to it.
func (w *worker) take(message Message) uint64 {
	w.handle(message)
	w.counter.add(message.Seq)
	return replyTo(message.Seq)
}

// takeShared is take of a worker that another thread may have at the same time.
func (w *worker) takeShared(message Message) {
	w.handle(message)
	w.counter.addShared(message.Seq)
}

func (w *worker) handle(message Message) {
	w.work.run(message.Seq)
	if w.also != nil {
		w.also(message)
	}
}

func replyTo(seq uint64) uint64 {
	return seq + 1
}
