package beside;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** What was handled: how many, from when to when, and how long the busiest key took by itself. */
final class Counted {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private final long events;
  private final boolean isTimed;
  private final AtomicLong count = new AtomicLong();
  private final ConcurrentHashMap<Key, LongAdder> busy = new ConcurrentHashMap<>();
  private final CountDownLatch isDone = new CountDownLatch(1);
  private volatile long began;
  private volatile long ended;
  private volatile long used;

  Counted(long events, boolean isTimed) {
    this.events = events;
    this.isTimed = isTimed;
  }

  /** Before the first is handled, the clock starts. */
  void begins() {
    if (count.get() == 0 && began == 0) {
      synchronized (this) {
        if (began == 0) {
          used = SYSTEM.getProcessCpuTime();
          began = System.nanoTime();
        }
      }
    }
  }

  void handled(byte[] key, long nanos) {
    if (isTimed) {
      busy.computeIfAbsent(new Key(key), unused -> new LongAdder()).add(nanos);
    }
    if (count.incrementAndGet() == events) {
      ended = System.nanoTime();
      used = SYSTEM.getProcessCpuTime() - used;
      isDone.countDown();
    }
  }

  void await() throws InterruptedException {
    isDone.await();
  }

  /** Seconds, events, seconds of processor time, seconds of the busiest key. */
  String line() {
    long busiest = busy.values().stream().mapToLong(LongAdder::sum).max().orElse(0);
    return (ended - began) / 1e9 + " " + count.get() + " " + used / 1e9 + " " + busiest / 1e9;
  }

  private record Key(byte[] bytes) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Key key && Arrays.equals(bytes, key.bytes);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(bytes);
    }
  }
}
