package compare;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** Lines of JSON: first what is offered, then a figure or an error for each repetition that is asked for. */
final class Protocol {
    /** Without a message handled for this long, those that are missing are lost, or senders hang. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final List<Offer> offers;
    private final PrintStream out;
    private final Duration patience;

    Protocol(List<Offer> offers, PrintStream out) {
        this(offers, out, PATIENCE);
    }

    Protocol(List<Offer> offers, PrintStream out, Duration patience) {
        this.offers = offers;
        this.out = out;
        this.patience = patience;
    }

    /** Answers until the input ends. */
    void serve(BufferedReader in) throws IOException {
        say(hello());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (!line.isBlank()) {
                say(answer(line));
            }
        }
    }

    private void say(JSONObject object) {
        out.println(object);
        out.flush();
    }

    private JSONObject hello() {
        String runtime = System.getProperty("java.runtime.name") + " " + Runtime.version();
        List<JSONObject> systems = offers.stream().map(Protocol::describe).collect(Collectors.toList());
        return new JSONObject().put("systems", new JSONArray(systems)).put("runtime", runtime);
    }

    private static JSONObject describe(Offer offer) {
        return new JSONObject()
                .put("name", offer.title())
                .put("version", offer.version())
                .put("language", "Java")
                .put("what", offer.what())
                .put("rows", offer.rows().stream().map(Row::name).collect(Collectors.toList()));
    }

    private JSONObject answer(String line) {
        try {
            JSONObject asked = new JSONObject(line);
            Offer offer = offer(asked.getString("system"));
            Row row = row(offer, asked.getString("row"));
            long messages = messages(asked, row);
            return new JSONObject().put("value", new Repetition(offer, row, messages, patience).run());
        } catch (JSONException why) {
            return error("a request has to be an object with \"system\", \"row\" and \"messages\": " + why.getMessage());
        } catch (Failure why) {
            return error(why.getMessage());
        } catch (Exception why) {
            why.printStackTrace();
            return error(why.toString());
        }
    }

    private Offer offer(String name) throws Failure {
        return offers.stream()
                .filter(offer -> offer.title().equals(name))
                .findFirst()
                .orElseThrow(() -> new Failure("there is no system \"" + name + "\"; the first line says which there are"));
    }

    private static Row row(Offer offer, String name) throws Failure {
        return offer.rows().stream()
                .filter(row -> row.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new Failure("\"" + offer.title() + "\" does not offer row \"" + name + "\""));
    }

    private static long messages(JSONObject asked, Row row) throws Failure {
        long messages = asked.getLong("messages");
        if (messages < row.callers()) {
            throw new Failure("\"messages\" is " + messages + ", but row " + row.name() + " needs at least " + row.callers());
        }
        return messages;
    }

    private static JSONObject error(String why) {
        return new JSONObject().put("error", why);
    }
}
