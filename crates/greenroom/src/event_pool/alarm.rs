//! Checks periodically whether memory is above its ceiling, and reports it. Not on the path of a
//! message.

use std::time::Duration;

use super::memory::PoolMemory;
use crate::{AnyAddress, PoolEvent, PoolEvents};

/// The interval of checks: memory that matters takes longer to fill, and a check takes the lock of
/// each shard.
const LOOK: Duration = Duration::from_secs(5);

/// It has fallen when it is below this many tenths of the ceiling: a value that swings around the
/// ceiling is reported once.
const FALLEN: u64 = 9;

/// Whether memory was reported as above the ceiling.
#[derive(Debug)]
pub(super) struct MemoryAlarm {
    ceiling: u64,
    told: bool,
}

impl MemoryAlarm {
    pub(super) fn new(ceiling: u64) -> Self {
        Self { ceiling, told: false }
    }

    /// The event to report, if any.
    fn look(&mut self, memory: &PoolMemory) -> Option<PoolEvent> {
        let used = memory.used();
        if used > self.ceiling && !self.told {
            self.told = true;
            let (ceiling, holds) = (self.ceiling, memory.holds());
            return Some(PoolEvent::MemoryAboveCeiling { used, ceiling, holds });
        }
        self.told &= used >= self.ceiling / 10 * FALLEN;
        None
    }

    /// Runs until the pool has ended.
    pub(super) async fn watch(
        mut self,
        pool: AnyAddress,
        notices: PoolEvents,
        memory: impl Fn() -> PoolMemory,
    ) {
        let name = pool.name().into();
        while tokio::time::timeout(LOOK, pool.ended()).await.is_err() {
            if let Some(what) = self.look(&memory()) {
                notices.emit(&name, what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn using(bytes: u64) -> PoolMemory {
        PoolMemory {
            average_message: 200,
            is_measured: false,
            estimate: 0,
            queues: 10,
            parked: 30,
            dead_letters: 20,
            process: Some(bytes),
            machine: None,
        }
    }

    #[test]
    fn h12_memory_around_the_ceiling_is_told_once_until_it_has_fallen() {
        let mut alarm = MemoryAlarm::new(1_000);
        for (used, told) in [
            (1_000, false),
            (1_001, true),
            (2_000, false),
            (950, false),
            (1_500, false),
            (899, false),
            (1_001, true),
        ] {
            assert_eq!(alarm.look(&using(used)).is_some(), told, "{used}");
        }
    }

    #[test]
    fn h12_where_the_process_is_not_known_what_the_pool_holds_counts() {
        let memory = PoolMemory { process: None, ..using(0) };
        assert!(MemoryAlarm::new(59).look(&memory).is_some());
        assert!(MemoryAlarm::new(60).look(&memory).is_none());
    }
}
