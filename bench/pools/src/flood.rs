//! The rest of a runtime while a pool with a thread of its own computes (P30): how long calls of
//! another pool take there, beside the same calls with nothing else going on. The runtime has one
//! thread, so that on two cores each thread can have one.

use std::time::{Duration, Instant};

use greenroom::{Address, Pool, Stop};

use crate::{
    Failure,
    message::{Counters, Message, Worker},
    work::Work,
};

/// Messages that the flooded pool always has in store: each computes for a millisecond.
const STORE: usize = 100;

#[derive(Clone, Copy)]
pub struct Flood {
    pub calls: u64,
    /// What each message of the flood computes.
    pub work: Work,
}

type To = Address<Message, u64, std::convert::Infallible>;

impl Flood {
    /// The 99th percentile of the calls, in nanoseconds.
    pub fn p99(self, flooded: bool) -> Result<f64, Failure> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_time().build()?;
        let (calm, busy) = (Counters::new(2), Counters::new(1));
        let times = runtime.block_on(async {
            let of = calm.clone();
            let served = Pool::new(move |slot| Worker::new(of.of(slot), Work::NONE)).workers(2);
            let served = served.quick_factory().spawn().await?;
            let (of, work) = (busy.clone(), self.work);
            let crunching = Pool::new(move |slot| Worker::new(of.of(slot), work)).workers(1);
            let crunching = crunching.capacity(STORE).dedicated_threads(1).spawn().await?;
            let flood = flooded.then(|| tokio::spawn(feed(crunching.address())));
            let times = tokio::spawn(calls(served.address(), self.calls)).await??;
            if let Some(flood) = flood {
                flood.abort();
            }
            crunching.stop(Stop::Now).await;
            served.stop(Stop::within(Duration::from_secs(5))).await;
            Ok::<_, Failure>(times)
        })?;
        if flooded && busy.sum() == 0 {
            return Err("the flood did not begin".into());
        }
        runtime.shutdown_timeout(Duration::from_secs(5));
        Ok(percentile(times))
    }
}

/// Sends as fast as there is room.
async fn feed(to: To) {
    for seq in 0.. {
        if to.send(Message::new(seq, seq)).await.is_err() {
            return;
        }
    }
}

/// How long each of these calls took, one after the other.
async fn calls(to: To, calls: u64) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::with_capacity(calls as usize);
    for seq in 0..calls {
        let began = Instant::now();
        to.call(Message::new(seq, seq)).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn percentile(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).map_or(0.0, |time| time.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_in_a_hundred_took_longer() {
        let times = (0..1_000).rev().map(Duration::from_nanos).collect();
        assert_eq!(percentile(times), 990.0);
    }
}
