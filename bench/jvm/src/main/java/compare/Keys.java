package compare;

import java.util.SplittableRandom;

/** Sequences of keys, drawn before anything is timed, and begun again when they end. */
final class Keys {
    /** Distinct keys that are drawn from. */
    static final int DISTINCT = 1_000_000;
    /** A power of two. */
    static final int DRAWN = 1 << 21;

    private final long[] drawn;

    private Keys(long[] drawn) {
        this.drawn = drawn;
    }

    long of(long seq) {
        return drawn[(int) (seq & (DRAWN - 1))];
    }

    static Keys uniform() {
        SplittableRandom random = new SplittableRandom(1);
        return new Keys(random.longs(DRAWN, 0, DISTINCT).toArray());
    }

    /** Key r - 1 has rank r, and is drawn with a probability of 1/r over the sum of all. */
    static Keys zipf() {
        double[] upTo = cumulative();
        SplittableRandom random = new SplittableRandom(2);
        return new Keys(random.doubles(DRAWN, 0, upTo[DISTINCT - 1]).mapToLong(point -> firstAbove(upTo, point)).toArray());
    }

    private static double[] cumulative() {
        double[] upTo = new double[DISTINCT];
        double sum = 0;
        for (int key = 0; key < DISTINCT; key++) {
            sum += 1.0 / (key + 1);
            upTo[key] = sum;
        }
        return upTo;
    }

    private static long firstAbove(double[] upTo, double point) {
        int low = 0;
        int high = upTo.length - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (upTo[middle] > point) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }
}
