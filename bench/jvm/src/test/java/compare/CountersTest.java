package compare;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class CountersTest {
    private final Counters counters = new Counters(2);
    private final Counters.Counter first = counters.claim();
    private final Counters.Counter second = counters.claim();

    @Test
    void allHandledOncePass() {
        first.add(0, 7);
        second.add(2, 7);
        first.add(1, 7);
        assertDoesNotThrow(() -> counters.check(3));
    }

    @Test
    void aLostMessageFails() {
        first.add(0, 7);
        assertThrows(Failure.class, () -> counters.check(2));
    }

    @Test
    void aMessageHandledTwiceFails() {
        first.add(0, 7);
        second.add(0, 7);
        assertThrows(Failure.class, () -> counters.check(1));
    }

    @Test
    void oneLostAndAnotherHandledTwiceFail() {
        first.add(0, 7);
        second.add(0, 7);
        assertThrows(Failure.class, () -> counters.check(2));
    }

    @Test
    void aWorkerTooManyHasNoCounter() {
        assertThrows(IllegalStateException.class, counters::claim);
    }
}
