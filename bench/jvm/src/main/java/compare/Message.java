package compare;

/** Six numbers of 64 bits, 48 bytes; the header of an object comes on top, as for any object of this language. */
class Message {
    final long seq;
    final long key;
    final long first;
    final long second;
    final long third;
    final long last;

    Message(long seq, long key) {
        this.seq = seq;
        this.key = key;
        first = seq;
        second = seq;
        third = seq;
        last = seq;
    }

    /** What the call that carries this message is answered. */
    final long reply() {
        return seq + 1;
    }
}
