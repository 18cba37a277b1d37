package compare;

import java.nio.ByteBuffer;
import org.apache.pekko.routing.ConsistentHashingRouter.ConsistentHashable;

/** A message that says by what it is routed. */
final class PekkoKeyed extends Message implements ConsistentHashable {
    PekkoKeyed(long seq, long key) {
        super(seq, key);
    }

    /** As bytes, which are hashed as they are; a {@link Long} would go through serialization first. */
    @Override
    public Object consistentHashKey() {
        return ByteBuffer.allocate(Long.BYTES).putLong(key).array();
    }
}
