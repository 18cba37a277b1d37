package compare;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Answers requests on standard input. */
final class Main {
    private Main() {}

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        // Pekko logs to standard output by default, which belongs to the protocol here.
        System.setOut(System.err);
        new Protocol(offers(), out).serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        // A repetition that hung may have left threads, which do not keep the program alive.
        System.exit(0);
    }

    static List<Offer> offers() {
        return List.of(
                new PekkoOffer(PekkoRouting.ROUND_ROBIN, true),
                new PekkoOffer(PekkoRouting.ROUND_ROBIN, false),
                new PekkoOffer(PekkoRouting.BALANCING, true),
                new PekkoOffer(PekkoRouting.BALANCING, false),
                new PekkoOffer(PekkoRouting.CONSISTENT_HASHING, true),
                new PekkoOffer(PekkoRouting.CONSISTENT_HASHING, false),
                new QueueOffer());
    }
}
