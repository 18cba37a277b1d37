//! The threads that producers and workers share, and how a run is timed.

use std::{
    future::Future,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::{Failure, message::Counters};

/// Tasks that send, each its share.
pub const PRODUCERS: u64 = 2;
/// Threads of a runtime.
pub const THREADS: usize = 2;
/// How often the counters are looked at once all is sent. Before that nobody looks, as reading a
/// counter takes its cache line from the worker that writes it.
const LOOK: Duration = Duration::from_micros(200);
/// Without a message handled for this long, those that are missing are lost, or senders hang.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// A message that is handled twice is seen after this long.
const SETTLED_AFTER: Duration = Duration::from_millis(2);

/// New for each repetition; what still runs is dropped with it.
pub trait Stage: Sized {
    fn new() -> Result<Self, Failure>;

    /// Runs a task. Those of neighbouring places run on different threads, where a
    /// system binds them to one.
    fn spawn(&self, place: usize, task: impl Future<Output = ()> + Send + 'static);

    /// For setting up and taking down, on the thread that waits.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
}

/// A task that sends its share.
pub trait Producer: Future<Output = Result<(), Failure>> + Send + 'static {}

impl<P: Future<Output = Result<(), Failure>> + Send + 'static> Producer for P {}

/// From the start of the producers until `total` messages have been handled in all.
pub fn time(
    stage: &impl Stage,
    producers: Vec<impl Producer>,
    counters: &Counters,
    total: u64,
) -> Result<Duration, Failure> {
    let (done, ended) = mpsc::channel();
    let count = producers.len();
    let start = Instant::now();
    for (place, producer) in producers.into_iter().enumerate() {
        let done = done.clone();
        stage.spawn(place, async move {
            // Nobody listens to those that end after one has failed.
            let _ = done.send(producer.await);
        });
    }
    drop(done);
    all_sent(&ended, count, counters)?;
    until_handled(counters, total)?;
    let took = start.elapsed();
    thread::sleep(SETTLED_AFTER);
    until_handled(counters, total)?;
    Ok(took)
}

/// Waits for the senders; fails when one of them does, or when they wait and nothing is handled.
pub fn all_sent(
    ended: &Receiver<Result<(), Failure>>,
    senders: usize,
    counters: &Counters,
) -> Result<(), Failure> {
    let (mut left, mut seen) = (senders, counters.sum());
    while left > 0 {
        match ended.recv_timeout(LOST_AFTER) {
            Ok(sent) => {
                sent?;
                left -= 1;
            }
            Err(RecvTimeoutError::Disconnected) => return Err("a sender panicked".into()),
            Err(RecvTimeoutError::Timeout) => match counters.sum() {
                now if now > seen => seen = now,
                _ => return Err(format!("senders hang: {seen} messages were handled").into()),
            },
        }
    }
    Ok(())
}

/// Waits until `total` messages have been handled; fails when they are not, or when there are more.
pub fn until_handled(counters: &Counters, total: u64) -> Result<(), Failure> {
    let (mut seen, mut since) = (counters.sum(), Instant::now());
    while seen < total {
        thread::sleep(LOOK);
        let now = counters.sum();
        if now > seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > LOST_AFTER {
            return Err(format!("lost: {seen} of {total} messages were handled").into());
        }
    }
    if seen > total {
        return Err(format!("{seen} messages were handled, but {total} were sent").into());
    }
    Ok(())
}

/// The messages of one sender: its share of all, without a gap.
pub fn share(sender: u64, of: u64, total: u64) -> std::ops::Range<u64> {
    let edge = |sender| total * sender / of;
    edge(sender)..edge(sender + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Runtime;

    #[test]
    fn shares_leave_no_gap() {
        for (of, total) in [(2, 0), (2, 1), (2, 7), (64, 100), (64, 5_000_000)] {
            let all: u64 = (0..of).map(|sender| share(sender, of, total).count() as u64).sum();
            assert_eq!(
                (all, share(0, of, total).start, share(of - 1, of, total).end),
                (total, 0, total)
            );
        }
    }

    /// Times producers that handle so many messages in all.
    fn timed(handled: u64, total: u64) -> Result<Duration, Failure> {
        let (stage, counters) = (Runtime::new().unwrap(), Counters::new(2));
        let producer = |place: u64| {
            let counter = counters.of(place as usize);
            async move {
                share(place, PRODUCERS, handled).for_each(|_| counter.add());
                Ok(())
            }
        };
        time(&stage, (0..PRODUCERS).map(producer).collect(), &counters, total)
    }

    #[test]
    fn a_message_handled_twice_fails_the_run() {
        assert!(timed(5, 5).is_ok());
        let error = timed(6, 5).unwrap_err().to_string();
        assert_eq!(error, "6 messages were handled, but 5 were sent");
    }

    #[test]
    fn a_message_that_is_lost_fails_the_run() {
        let error = timed(4, 5).unwrap_err().to_string();
        assert_eq!(error, "lost: 4 of 5 messages were handled");
    }

    #[test]
    fn a_producer_that_fails_panics_or_hangs_fails_the_run() {
        let fails = |producer: fn() -> Result<bool, Failure>| {
            let (stage, counters) = (Runtime::new().unwrap(), Counters::new(1));
            let producer = async move {
                match producer()? {
                    true => std::future::pending().await,
                    false => Ok(()),
                }
            };
            time(&stage, vec![producer], &counters, 1).unwrap_err().to_string()
        };
        assert_eq!(fails(|| Err("refused".into())), "refused");
        assert_eq!(fails(|| panic!("on purpose")), "a sender panicked");
        assert_eq!(fails(|| Ok(true)), "senders hang: 0 messages were handled");
    }
}
