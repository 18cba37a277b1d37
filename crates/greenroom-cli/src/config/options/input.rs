//! Where events come from.

use std::time::Duration;

use greenroom_bus::source::InputSetup;
use greenroom_config::{
    Chosen, count, duration, group, options, size,
    units::{DAY_MS, GIB},
};

use super::{pool::PoolConfig, records::RecordsConfig};
use crate::config::kinds::Inputs;

options! {
    /// Where events come from: exactly one kind.
    pub struct InputConfig named name = "an input" {
        /// How many of its events may wait for full pools before it pauses. Until then, a full pool
        /// holds up no other.
        run_ahead: usize = count(1..=10_000_000).default("10000");
        /// How many bytes of its events may be read and not yet settled before it pauses. A larger
        /// event passes when nothing else of its input is in flight.
        in_flight: u64 = size(1024..=1024 * GIB).default("64MiB");
        /// How often its positions are stored, and sooner after much settled work: about this much
        /// settled work is delivered again after a crash. By default, every 100 ms for a file on
        /// this machine (a checkpoint, the log of `http`), and every second for a broker.
        commit_every: Option<Duration> = duration(10..=DAY_MS).optional();
        /// The deepest nesting of arrays and objects in the data of an event. Deeper data becomes a
        /// dead letter (`malformed`): many programs fail on deeply nested JSON.
        max_depth: u32 = count(1..=1_000_000).default("128");
        /// The rule that turns records into events, if they are not CloudEvents. Without it, each
        /// line, record or posted body is a CloudEvent.
        records: Option<RecordsConfig> = group().optional();
        .. /// What it reads.
        kind: Chosen<Inputs>;
    }
}

impl InputConfig {
    /// The arguments that its kind is opened with.
    ///
    /// # Errors
    /// A rule for records that yields no valid event; a checked configuration has none.
    pub(crate) fn setup(&self, pools: &[PoolConfig]) -> Result<InputSetup, String> {
        Ok(InputSetup {
            name: self.name.clone(),
            records: self.records.as_ref().map(RecordsConfig::mapping).transpose()?,
            room: pools.iter().map(PoolConfig::holds).fold(self.run_ahead, usize::saturating_add),
        })
    }
}
