//! Disturbances, by a seed.

use std::time::Duration;

use greenroom_bus::source::generator::zipf::Chance;
use tokio::time::sleep;

use crate::partitioned::Broker;

/// Attempts of one event that are disturbed at most: later ones are left alone, so that the retries
/// of a handler are enough.
const DISTURBED: u32 = 2;

/// Rebalances and repeats of one run at most.
const STEPS: u32 = 40;

/// The disturbances of one run. The same event fares the same, whenever it comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chaos {
    seed: u64,
}

/// The fate of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) delay: Duration,
    pub(super) mishap: Mishap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    None,
    /// The handler is not asked.
    Fails,
    /// The handler is asked, and its answer is lost.
    LosesAnswer,
}

impl Chaos {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    pub(super) fn fate(self, handler: &str, id: &str, attempt: u32) -> Fate {
        let mut chance = self.chance([handler, id], attempt);
        let delay = match chance.below(4) {
            0 => 0,
            1..3 => chance.below(20),
            _ => chance.below(400),
        };
        let mishap = match chance.below(10) {
            _ if attempt > DISTURBED => Mishap::None,
            0..2 => Mishap::Fails,
            2 => Mishap::LosesAnswer,
            _ => Mishap::None,
        };
        Fate { delay: Duration::from_millis(delay as u64), mishap }
    }

    /// How long an output takes to store an event.
    pub(super) fn stores_after(self, id: &str) -> Duration {
        Duration::from_millis(self.chance(["output", id], 0).below(30) as u64)
    }

    /// Revokes partitions and repeats events, until all are done.
    pub(super) async fn rebalance(self, broker: &Broker, is_done: impl Fn(&Broker) -> bool) {
        let (mut chance, partitions) = (Chance::new(self.seed), broker.partitions());
        for _ in 0..STEPS {
            sleep(Duration::from_millis(1 + chance.below(60) as u64)).await;
            if is_done(broker) {
                return;
            }
            let partition = partitions[chance.below(partitions.len())];
            if chance.below(3) == 0 {
                broker.repeat(partition, 1 + chance.below(20));
                continue;
            }
            let before = broker.revoked().len();
            broker.revoke(partition);
            broker.until(|broker| broker.revoked().len() > before).await;
            sleep(Duration::from_millis(chance.below(100) as u64)).await;
            broker.assign(partition);
        }
    }

    fn chance(self, texts: [&str; 2], number: u32) -> Chance {
        let bytes = texts.iter().flat_map(|text| text.bytes());
        let hash = bytes.fold(self.seed ^ u64::from(number), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Chance::new(hash)
    }
}
