//! K05: keys that somebody has chosen so that a weak hash maps them all to one place, beside keys
//! that nobody has chosen. Both are sent to a pool, whose hash has a random seed: it should tell no
//! difference. Handlers suspend, so that each key gets a lane, which is looked up by its hash.

use std::{convert::Infallible, time::Duration};

use greenroom::prelude::*;
use tokio::task::yield_now;

use crate::{
    Failure,
    channels::MAILBOX,
    keyed::{self, WORKERS},
    keys::{self, Keys},
    message::{Counters, Message, Worker},
    rounds::Side,
    stage::{Stage, Threads},
    work::Work,
};

/// Distinct keys on either side.
pub const KEYS: usize = 1 << 16;

/// Whose hash the keys collide under.
#[derive(Clone, Copy)]
pub enum Weak {
    /// The number itself, of which a table uses the lower bits.
    Identity,
    /// FNV-1a, of which it does the same.
    Fnv,
}

impl Weak {
    /// Keys whose hashes agree in their lower bits.
    pub fn crafted(self) -> Vec<u64> {
        match self {
            Self::Identity => (1..=KEYS as u64).map(|key| key << 32).collect(),
            Self::Fnv => (0..).filter(|key| fnv(*key).is_multiple_of(256)).take(KEYS).collect(),
        }
    }
}

/// FNV-1a over the bytes of a key (Fowler, Noll, Vo; RFC 9923).
fn fnv(key: u64) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    key.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

pub struct Collisions {
    random: Keys,
    crafted: Keys,
    messages: u64,
    threads: Threads,
}

impl Collisions {
    pub fn new(weak: Weak, messages: u64, threads: Threads) -> Self {
        let (random, crafted) = (keys::random(KEYS), weak.crafted());
        Self { random: keys::among(&random), crafted: keys::among(&crafted), messages, threads }
    }

    /// Both sides are a pool: the baseline has keys that nobody has chosen.
    pub fn run(&self, side: Side) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(WORKERS));
        let of = counters.clone();
        let pool = Pool::new(move |slot| Suspending(Worker::new(of.of(slot), Work::NONE)));
        let pool = pool.quick_factory().workers(WORKERS).mailbox(MAILBOX);
        let pool = pool.ordered_by(|message: &Message| message.key);
        let pool = stage.block_on(pool.spawn())??;
        let keys = match side {
            Side::Baseline => &self.random,
            Side::Greenroom => &self.crafted,
        };
        let producers = keyed::to_pool(keys, self.messages, &pool.address());
        let took = stage.time(producers, &counters, self.messages)?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        Ok(took)
    }
}

struct Suspending(Worker);

impl Actor for Suspending {
    type Message = Message;
    type Reply = u64;
    type Error = Infallible;

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<u64, Infallible> {
        yield_now().await;
        Ok(self.0.take(&message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crafted_keys_are_distinct_and_collide() {
        for (weak, hash) in [(Weak::Identity, (|key| key) as fn(u64) -> u64), (Weak::Fnv, fnv)] {
            let mut keys = weak.crafted();
            assert!(keys.iter().all(|key| hash(*key) % 256 == hash(keys[0]) % 256));
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), KEYS);
        }
    }
}
