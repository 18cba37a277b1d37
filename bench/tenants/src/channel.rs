//! What the load is published to, and the engine reads.

mod file;
mod kafka;
mod log;
mod nats;

use std::{env, sync::Arc};

use greenroom_bus::{BoxFuture, source::Source};

use crate::{Failure, load::Job};

pub trait Channel: Send + Sync {
    /// Reads it from its start.
    fn source(&self) -> BoxFuture<'_, Result<Box<dyn Source>, Failure>>;

    /// A client of its own.
    fn publisher(&self) -> BoxFuture<'_, Result<Arc<dyn Publisher>, Failure>>;

    /// Removes what it stores.
    fn remove(&self) -> BoxFuture<'_, Result<(), Failure>>;
}

pub trait Publisher: Send + Sync {
    /// Publishes these, in this order. It has begun when this returns, and goes on if nobody waits;
    /// who waits knows that all are stored.
    fn publish(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), Failure>>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    File,
    Log,
    Kafka,
    Nats,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::File, Self::Log, Self::Kafka, Self::Nats];

    pub fn name(self) -> &'static str {
        ["file", "log", "kafka", "nats"][self as usize]
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn partitions(self) -> u64 {
        if self == Self::Kafka { kafka::PARTITIONS as u64 } else { 1 }
    }

    /// The variable that has the address of its server.
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::File | Self::Log => None,
            Self::Kafka => Some("GREENROOM_KAFKA"),
            Self::Nats => Some("GREENROOM_NATS"),
        }
    }

    pub fn is_there(self) -> bool {
        self.variable().is_none_or(|variable| env::var(variable).is_ok())
    }

    /// A new one, with nothing in it.
    pub async fn open(self) -> Result<Box<dyn Channel>, Failure> {
        let address = self.variable().map(env::var).transpose()?.unwrap_or_default();
        Ok(match self {
            Self::File => Box::new(file::GrowingFile::open()?),
            Self::Log => Box::new(log::Log::open()?),
            Self::Kafka => Box::new(kafka::Topic::open(address).await?),
            Self::Nats => Box::new(nats::Stream::open(address).await?),
        })
    }
}

/// A name that no other run has.
fn unique() -> Result<String, Failure> {
    let now = std::time::UNIX_EPOCH.elapsed()?;
    Ok(format!("tenants-{}", now.as_nanos()))
}
