package compare;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.json.JSONObject;
import org.junit.jupiter.api.Test;

class ProtocolTest {
    private static final long MESSAGES = 10_000;

    @Test
    void everySystemAnswersTheFirstAndTheLastOfItsRows() throws IOException {
        for (Offer offer : Main.offers()) {
            for (Row row : List.of(offer.rows().get(0), offer.rows().get(offer.rows().size() - 1))) {
                JSONObject answer = answers(offer, asking(offer.title(), row.name())).get(1);
                assertTrue(answer.optDouble("value") > 0, offer.title() + ", " + row.name() + ": " + answer);
            }
        }
    }

    @Test
    void theFirstLineSaysWhatIsOffered() throws IOException {
        JSONObject system = answers(Faults.DROPS).get(0).getJSONArray("systems").getJSONObject(0);
        assertEquals("drops", system.getString("name"));
        assertEquals(List.of("A4", "D1"), system.getJSONArray("rows").toList());
    }

    @Test
    void aSystemThatDropsAMessageGetsAnErrorAndTheNextRequestAFigure() throws IOException {
        List<JSONObject> answers = answers(Faults.DROPS, asking("drops", "A4"), asking("drops", "D1"));
        assertError(answers.get(1), "lost: 9999 of 10000 messages were handled");
        assertTrue(answers.get(2).has("value"), answers.get(2).toString());
    }

    @Test
    void aSystemThatDoublesAMessageGetsAnError() throws IOException {
        assertError(answers(Faults.DOUBLES, asking("doubles", "A4")).get(1), "handled twice: 10001 of 10000");
    }

    @Test
    void aSystemThatHangsGetsAnErrorAndTheNextRequestAFigure() throws IOException {
        List<JSONObject> answers = answers(Faults.HANGS, asking("hangs", "A4"), asking("hangs", "D1"));
        assertError(answers.get(1), "senders hang");
        assertTrue(answers.get(2).has("value"), answers.get(2).toString());
    }

    @Test
    void whatIsNoRequestGetsAnErrorThatSaysWhy() throws IOException {
        Offer offer = Faults.DROPS;
        assertError(answers(offer, "A4, please").get(1), "a request has to be an object");
        assertError(answers(offer, "{\"system\": \"drops\"}").get(1), "\"row\"");
        assertError(answers(offer, asking("nobody", "A4")).get(1), "there is no system \"nobody\"");
        assertError(answers(offer, asking("drops", "B-zipf")).get(1), "does not offer row \"B-zipf\"");
        assertError(answers(offer, asking("drops", "A4").replace("10000", "0")).get(1), "needs at least 1");
    }

    private static void assertError(JSONObject answer, String part) {
        assertTrue(answer.optString("error").contains(part), answer.toString());
    }

    private static String asking(String system, String row) {
        return new JSONObject().put("system", system).put("row", row).put("messages", MESSAGES).toString();
    }

    /** The lines that come back, of which the first is what is offered. */
    private static List<JSONObject> answers(Offer offer, String... requests) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream lines = new PrintStream(out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new StringReader(String.join("\n", requests)));
        new Protocol(List.of(offer), lines, Duration.ofMillis(500)).serve(in);
        return out.toString(StandardCharsets.UTF_8).lines().map(JSONObject::new).toList();
    }
}
