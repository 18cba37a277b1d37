//! Messages from 64 bytes to 64 KiB, moved and not boxed: what copying them costs on the way
//! through a pool and a channel.

use std::{convert::Infallible, hint::black_box, sync::Arc, time::Duration};

use greenroom::prelude::*;
use tokio::sync::mpsc;

use crate::{
    Failure,
    message::{Counter, Counters},
    rounds::{Figures, Side},
    stage::{PRODUCERS, Stage, Threads, share},
};

const WORKERS: usize = 4;
/// Messages of any size that may wait for a worker: of the largest, 100 take 6.3 MiB.
pub const MAILBOX: usize = 100;
/// Of one repetition.
const BYTES: u64 = 1 << 30;
const MOST_MESSAGES: u64 = 1_000_000;

/// Each size is a pool of its own to the compiler, and takes some seconds of it.
pub const SIZES: [u64; 4] = [64, 1_024, 8_192, 65_536];

/// Runs one side once with messages of so many bytes, and gives millions a second.
pub fn run(bytes: u64, side: Side) -> Result<Figures, Failure> {
    let took = match bytes {
        64 => Sized::<64>::run(side),
        1_024 => Sized::<1_024>::run(side),
        8_192 => Sized::<8_192>::run(side),
        65_536 => Sized::<65_536>::run(side),
        other => return Err(format!("no messages of {other} bytes").into()),
    }?;
    Ok(Figures::from(messages(bytes) as f64 / took.as_nanos() as f64 * 1e3))
}

fn messages(bytes: u64) -> u64 {
    (BYTES / bytes).min(MOST_MESSAGES)
}

type Parcel<const BYTES: usize> = [u8; BYTES];

/// What handles them on either side.
struct Sized<const BYTES: usize>(Arc<Counter>);

impl<const BYTES: usize> Sized<BYTES> {
    fn run(side: Side) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(Threads::Two)?, Counters::new(WORKERS));
        match side {
            Side::Baseline => Self::baseline(&stage, &counters),
            Side::Greenroom => Self::greenroom(&stage, &counters),
        }
    }

    fn total() -> u64 {
        messages(BYTES as u64)
    }

    /// Every byte is written, as it would be.
    fn parcel(seq: u64) -> Parcel<BYTES> {
        black_box([seq as u8; BYTES])
    }

    fn take(&self, parcel: &Parcel<BYTES>) {
        black_box(parcel[BYTES - 1]);
        self.0.add();
    }

    fn baseline(stage: &Stage, counters: &Counters) -> Result<Duration, Failure> {
        let task = |index| {
            let handler = Self(counters.of(index));
            let (sender, mut inbox) = mpsc::channel(MAILBOX);
            stage.spawn(async move {
                while let Some(parcel) = inbox.recv().await {
                    handler.take(&parcel);
                }
            })?;
            Ok::<_, Failure>(sender)
        };
        let senders = (0..WORKERS).map(task).collect::<Result<Vec<_>, _>>()?;
        let producer = |index| {
            let senders = senders.clone();
            async move {
                for seq in share(index, PRODUCERS, Self::total()) {
                    senders[seq as usize % WORKERS].send(Self::parcel(seq)).await?;
                }
                Ok(())
            }
        };
        stage.time((0..PRODUCERS).map(producer).collect(), counters, Self::total())
    }

    fn greenroom(stage: &Stage, counters: &Counters) -> Result<Duration, Failure> {
        let of = counters.clone();
        let pool = Pool::new(move |slot| Self(of.of(slot))).quick_factory();
        let pool = stage.block_on(pool.workers(WORKERS).mailbox(MAILBOX).spawn())??;
        let producer = |index| {
            let to = pool.address();
            async move {
                for seq in share(index, PRODUCERS, Self::total()) {
                    to.send(Self::parcel(seq)).await?;
                }
                Ok(())
            }
        };
        let producers = (0..PRODUCERS).map(producer).collect();
        let took = stage.time(producers, counters, Self::total())?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        Ok(took)
    }
}

impl<const BYTES: usize> Actor for Sized<BYTES> {
    type Message = Parcel<BYTES>;
    type Reply = ();
    type Error = Infallible;

    async fn handle(
        &mut self,
        parcel: Parcel<BYTES>,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        self.take(&parcel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_moves_at_most_a_gibibyte() {
        assert_eq!(messages(64), MOST_MESSAGES);
        assert_eq!(messages(65_536) * 65_536, BYTES);
    }

    #[test]
    fn a_size_that_is_not_compiled_is_an_error() {
        assert!(run(65, Side::Greenroom).is_err());
    }
}
