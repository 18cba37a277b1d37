package compare;

/** The messages of one of several senders, from the first up to the end, exclusive: together they leave no gap. */
record Share(long first, long end) {
    static Share of(int sender, int senders, long messages) {
        return new Share(messages * sender / senders, messages * (sender + 1) / senders);
    }
}
