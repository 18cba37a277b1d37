package beside;

import java.time.Duration;

/** What is to be consumed, and how. */
record Task(
    String brokers, String topic, String group, long events, int workers, Duration work, Duration commits) {

  static Task of(String[] args) {
    if (args.length != 8) {
      throw new IllegalArgumentException(
          "BROKERS TOPIC GROUP EVENTS WARM_UP WORKERS WORK_MILLIS COMMIT_MILLIS");
    }
    return new Task(
        args[0],
        args[1],
        args[2],
        Long.parseLong(args[3]),
        Integer.parseInt(args[5]),
        Duration.ofMillis(Long.parseLong(args[6])),
        Duration.ofMillis(Long.parseLong(args[7])));
  }

  /** The same with fewer events, as a group of its own: so that what is measured is compiled. */
  Task warmUp(long events) {
    return new Task(brokers, topic, group + "-warm-up", events, workers, work, commits);
  }
}
