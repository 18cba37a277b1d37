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
        /// How many of its events may wait beside full pools before it pauses. Until then a
        /// full pool stops no other.
        run_ahead: usize = count(1..=10_000_000).default("10000");
        /// How many bytes of its events may be taken and not settled before it pauses. An event
        /// that is larger passes while nothing else of its input is in flight.
        in_flight: u64 = size(1024..=1024 * GIB).default("64MiB");
        /// How often its positions are stored, sooner where much was settled since: about so much
        /// settled work is delivered again after a crash. Without it, every 100 ms where they are a
        /// file on this machine (a checkpoint, the log of `http`), and every second with a broker.
        commit_every: Option<Duration> = duration(10..=DAY_MS).optional();
        /// How many levels of arrays and objects the data of an event may have. One with more is a
        /// dead letter (`malformed`): many programs fail at JSON that is nested too deeply.
        max_depth: u32 = count(1..=1_000_000).default("128");
        /// The rule that makes events of what is read, where that is no CloudEvents. Without it,
        /// each line or record, or what is posted, is a CloudEvent.
        records: Option<RecordsConfig> = group().optional();
        .. /// What it reads.
        kind: Chosen<Inputs>;
    }
}

impl InputConfig {
    /// What its kind is opened with.
    ///
    /// # Errors
    /// A rule for records that no event can follow; a configuration that was checked has none.
    pub(crate) fn setup(&self, pools: &[PoolConfig]) -> Result<InputSetup, String> {
        Ok(InputSetup {
            name: self.name.clone(),
            records: self.records.as_ref().map(RecordsConfig::mapping).transpose()?,
            room: pools.iter().map(PoolConfig::holds).fold(self.run_ahead, usize::saturating_add),
        })
    }
}
