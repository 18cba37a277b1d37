package compare;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class KeysTest {
    @Test
    void zipfDrawsAKeyByTheInverseOfItsRank() {
        Keys keys = Keys.zipf();
        double harmonic = LongStream.rangeClosed(1, Keys.DISTINCT).mapToDouble(rank -> 1.0 / rank).sum();
        for (long rank : new long[] {1, 2, 10}) {
            double expected = 1 / (rank * harmonic);
            assertEquals(1, share(keys, key -> key == rank - 1) / expected, 0.02, "rank " + rank);
        }
        assertEquals(0, share(keys, key -> key < 0 || key >= Keys.DISTINCT));
    }

    @Test
    void uniformDrawsEachTenthOfTheKeysAsOften() {
        Keys keys = Keys.uniform();
        for (long tenth = 0; tenth < 10; tenth++) {
            long wanted = tenth;
            assertEquals(0.1, share(keys, key -> key / (Keys.DISTINCT / 10) == wanted), 0.002, "tenth " + tenth);
        }
    }

    private static double share(Keys keys, LongPredicate wanted) {
        return (double) LongStream.range(0, Keys.DRAWN).map(keys::of).filter(wanted).count() / Keys.DRAWN;
    }
}
