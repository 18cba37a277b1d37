//! What the author of a connector writes.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    event::Event,
    source::{Partition, Source},
    watermark::Positions,
};

use super::ability::Ability;

/// What a connector has stored of its positions, read from where it stores them rather than from
/// what it remembers.
pub type Stored = Arc<dyn Fn() -> Vec<(Partition, Positions)> + Send + Sync>;

/// A connector that is to be checked.
pub trait Connector: Send + Sync {
    /// What the output calls it.
    fn name(&self) -> String;

    /// Why it cannot do this, if it cannot. Everything, unless said otherwise.
    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        let _ = ability;
        None
    }

    /// Why nothing of it can be checked here, if it cannot: a server that is not there, and how to
    /// have the checks run. They are told as not run.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Which clock its sources keep to; [`Clock::Real`] unless said otherwise.
    fn clock(&self) -> Clock {
        Clock::Real
    }

    /// What a place will hold where these are wanted. A source that makes its own events answers
    /// with as many of them, in the order in which it gives them; events of a key are known by
    /// their `subject`, and each by its `id`.
    fn items(&self, wanted: Vec<Item>) -> Vec<Item> {
        wanted
    }

    /// A fresh place that holds nothing.
    ///
    /// # Errors
    /// Why there is none.
    fn place(&self) -> Result<Box<dyn Place>, String>;
}

/// Where events lie: a file, a topic, a queue. It outlives the sources that read it. Its methods
/// are called on the runtime of the run at hand, which is dropped with it: keep no connection from
/// one to the next.
pub trait Place: Send {
    /// Puts these at the end, each into its partition, in this order.
    ///
    /// # Errors
    /// Why not.
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>>;

    /// A source that reads it: from its start, or where another one has got to.
    ///
    /// # Errors
    /// Why there is none.
    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>>;

    /// Takes a partition away from the source. Called only where the connector can do that.
    ///
    /// # Errors
    /// Why not.
    fn revoke(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { Err(format!("this place cannot take partition {partition} away")) })
    }

    /// Gives a partition back to the source.
    ///
    /// # Errors
    /// Why not.
    fn assign(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { Err(format!("this place cannot give partition {partition} back")) })
    }

    /// Reads what is stored of the positions, where that can be read. Otherwise commits are judged
    /// by what restarts give.
    fn stored(&self) -> Option<Stored> {
        None
    }
}

/// Which clock a source keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Tokio's, which is paused: all that the source waits for is on the runtime.
    Virtual,
    /// The real one: threads, files, networks.
    Real,
}

/// Something that a place holds.
#[derive(Debug, Clone)]
pub struct Item {
    /// Where. [`Partition::ONLY`] for a connector that has no partitions.
    pub partition: Partition,
    /// What.
    pub body: Body,
}

/// What an item is.
#[derive(Debug, Clone)]
pub enum Body {
    /// An event.
    Event(Event),
    /// Bytes that are no event. Only for connectors that can [hold them](Ability::HoldsMalformed).
    Malformed(Vec<u8>),
    /// A position that is never given. Only for connectors that can [have them](Ability::HasGaps).
    Gap,
}
