package compare;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class WindowTest {
    @Test
    void shutsAtItsBoundAndOpensWhenMessagesAreHandled() {
        Counters counters = new Counters(1);
        Counters.Counter counter = counters.claim();
        Window window = new Window(counters);
        long granted = 0;
        while (window.take()) {
            granted += Window.LEAVE;
        }
        assertEquals(Window.IN_FLIGHT, granted);
        for (long seq = 0; seq < Window.LEAVE; seq++) {
            counter.add(seq, 0);
        }
        assertTrue(window.take());
        assertFalse(window.take());
    }
}
