package beside;

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.CommitMode;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Handles so many events of a topic in order per key, and prints how long that took. */
public final class Main {
  private Main() {}

  public static void main(String[] args) throws Exception {
    Task task = Task.of(args);
    consume(task.warmUp(Long.parseLong(args[4])));
    System.out.println(consume(task).line());
    // Its threads are not waited for.
    System.exit(0);
  }

  private static Counted consume(Task task) throws InterruptedException {
    Counted counted = new Counted(task.events(), !task.work().isZero());
    try (ParallelStreamProcessor<byte[], byte[]> processor = processor(task)) {
      processor.subscribe(List.of(task.topic()));
      processor.poll(
          context -> {
            counted.begins();
            long from = System.nanoTime();
            work(task);
            counted.handled(context.getSingleConsumerRecord().key(), System.nanoTime() - from);
          });
      counted.await();
      processor.closeDontDrainFirst();
    }
    return counted;
  }

  private static ParallelStreamProcessor<byte[], byte[]> processor(Task task) {
    Map<String, Object> properties =
        Map.of(
            "bootstrap.servers", task.brokers(),
            "group.id", task.group(),
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false");
    var deserializer = new ByteArrayDeserializer();
    var consumer = new KafkaConsumer<>(properties, deserializer, deserializer);
    ParallelConsumerOptions<byte[], byte[]> options =
        ParallelConsumerOptions.<byte[], byte[]>builder()
            .ordering(ProcessingOrder.KEY)
            .maxConcurrency(task.workers())
            .commitMode(CommitMode.PERIODIC_CONSUMER_ASYNCHRONOUS)
            .commitInterval(task.commits())
            .consumer(consumer)
            .build();
    return ParallelStreamProcessor.createEosStreamProcessor(options);
  }

  private static void work(Task task) {
    if (task.work().isZero()) {
      return;
    }
    try {
      Thread.sleep(task.work().toMillis());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
