//! Events to a topic (F07).
//!
//! ```text
//!                              ┌────────────── thread ─────────────┐
//! accept ──room──▶ waiting ──▶ librdkafka ──batches──▶ broker ── stored ──▶ confirmed
//!            ▲       ▲                                   │
//!            │       └──────── one by one ◀──────────────┼─ for now, or something to be corrected: again
//!            └ given back once settled                   └─ too large, invalid: rejected for good
//! ```
//!
//! The producer is idempotent: a record that it sends again after a lost answer is stored once, and
//! the records of a partition are stored in the order of acceptance. Records of one key go to one
//! partition.
//!
//! Records that the brokers do not answer are sent again by librdkafka for as long as it takes.
//! Refused records are sent again one by one, with a backoff, and alone: a missing or forbidden
//! topic **pauses** the output until that is corrected; a record that is refused as too large or
//! invalid is **rejected**, and its event becomes a dead letter.
//!
//! **Limits.** A broker refuses a batch as a whole. If one record of it was too large, those of the
//! same key that were under way behind it may be stored before the others are sent again. So if a
//! topic accepts less than librdkafka's `message.max.bytes` (1 MB), set that property to the
//! topic's `max.message.bytes`: then each record is checked before it is sent, and no batch is
//! larger. Larger records are rejected here, and the reason says that it was not the broker.
//!
//! **Outages.** While the brokers store nothing, librdkafka is given nothing more. An event that
//! waits here, and whose partition is lost during the wait, is dropped: the new owner of the
//! partition publishes it. The 2,048 that librdkafka has at most are published by both.
//!
//! **Bounds.** At most 4,096 events and 32 MiB are accepted and not settled.

mod dead_letters;
mod driver;
mod record;
mod setup;
mod shared;

use std::{fmt, sync::Arc};

use greenroom_bus::sink::{
    SinkError,
    remote::{RemoteDriver, RemoteSink},
};

pub use self::dead_letters::KafkaDeadLetters;
use self::{driver::Driver, setup::OutputSetup, shared::Shared};
pub use crate::options::KafkaSinkMode;
use crate::{options::KafkaOutput, topic::check_name, unusable::Unusable};

/// Publishes events to a topic.
pub struct KafkaSink {
    driver: Driver,
}

impl KafkaSink {
    /// A sink that publishes by these options. It connects in the background: brokers that do not
    /// answer are tried again.
    ///
    /// # Errors
    /// An option or a property cannot be used. Values of properties are not shown.
    pub fn open(output: KafkaOutput) -> Result<Self, SinkError> {
        let name = format!("kafka:{}", output.topic);
        let failed = |error: Unusable| SinkError::new(&name, error.why);
        let setup = OutputSetup::new(output).map_err(failed)?;
        let shared = Arc::new(Shared::new(name.clone(), setup));
        Ok(Self { driver: Driver::begin(&shared).map_err(failed)? })
    }

    /// Whether [`open`](Self::open) would take these options. No broker is asked; files that
    /// properties name are read.
    ///
    /// # Errors
    /// An option cannot be used. Values of properties are not shown.
    pub fn check(output: &KafkaOutput) -> Result<(), Unusable> {
        let setup = OutputSetup::new(output.clone())?.disconnected();
        check_name("topic", &output.topic)?;
        driver::producer(&Arc::new(Shared::new(String::new(), setup))).map(drop)
    }
}

impl RemoteSink for KafkaSink {
    type Driver = Driver;

    fn driver(&self) -> &Driver {
        &self.driver
    }
}

impl fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink").field("name", &self.driver.describe()).finish_non_exhaustive()
    }
}
