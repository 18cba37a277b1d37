package compare;

/** Why a repetition has no figure, in words for whoever reads the report. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    Failure(String why) {
        super(why);
    }

    Failure(String why, Throwable cause) {
        super(why + ": " + cause, cause);
    }
}
