package compare;

/** Arithmetic of a known length that depends on itself, so that neither compiler nor processor can shorten it. */
record Work(int turns) {
    private static final int CALIBRATION_TURNS = 200_000;
    /** Enough that the loop is compiled long before the last. */
    private static final int MEASUREMENTS = 200;
    private static final double NANOS_PER_TURN = nanosPerTurn();

    static Work ofNanos(int nanos) {
        return new Work((int) Math.round(nanos / NANOS_PER_TURN));
    }

    /** Returns a number that has to be used, or the work may be left out. */
    long run(long seed) {
        long x = seed;
        for (int turn = 0; turn < turns; turn++) {
            x = Long.rotateLeft((x ^ turn) * 6_364_136_223_846_793_005L, 17);
        }
        return x;
    }

    /** The best of several measurements, as all that disturbs makes it longer. */
    private static double nanosPerTurn() {
        Work work = new Work(CALIBRATION_TURNS);
        long best = Long.MAX_VALUE;
        long result = 1;
        for (int measurement = 0; measurement < MEASUREMENTS; measurement++) {
            long start = System.nanoTime();
            result = work.run(result);
            best = Math.min(best, System.nanoTime() - start);
        }
        if (result == 0) {
            throw new IllegalStateException("the work came to nothing");
        }
        return (double) best / CALIBRATION_TURNS;
    }
}
