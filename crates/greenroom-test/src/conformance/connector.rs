//! The interface for the author of a connector.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    event::Event,
    source::{Partition, Source},
    watermark::Positions,
};

use super::ability::Ability;

/// Reads a connector's stored positions, from its storage rather than from its memory.
pub type Stored = Arc<dyn Fn() -> Vec<(Partition, Positions)> + Send + Sync>;

/// A connector to check.
pub trait Connector: Send + Sync {
    /// Its name in the output.
    fn name(&self) -> String;

    /// Why it lacks this ability, if it does. It has every ability by default.
    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        let _ = ability;
        None
    }

    /// Why it cannot be checked here, if so: a missing server, and how to make the checks run. They
    /// are reported as not run.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The clock that its sources use; [`Clock::Real`] by default.
    fn clock(&self) -> Clock {
        Clock::Real
    }

    /// The items that a place will hold if these are wanted. A source that makes its own events
    /// returns as many of them, in the order in which it gives them; an event's key is its
    /// `subject`, and its identity its `id`.
    fn items(&self, wanted: Vec<Item>) -> Vec<Item> {
        wanted
    }

    /// A new, empty place.
    ///
    /// # Errors
    /// Why there is none.
    fn place(&self) -> Result<Box<dyn Place>, String>;
}

/// The storage of events: a file, a topic, a queue. It outlives the sources that read it. Its
/// methods are called on the runtime of the current run, which is dropped at its end: keep no
/// connection from one run to the next.
pub trait Place: Send {
    /// Appends these, each to its partition, in this order.
    ///
    /// # Errors
    /// Why not.
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>>;

    /// A source that reads it: from its start, or from where the last one ended.
    ///
    /// # Errors
    /// Why there is none.
    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>>;

    /// Takes a partition away from the source. Called only if the connector has that ability.
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

    /// Reads the stored positions, if they can be read. Otherwise commits are judged by the events
    /// after restarts.
    fn stored(&self) -> Option<Stored> {
        None
    }
}

/// The clock of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Tokio's, which is paused: everything that the source waits for is on the runtime.
    Virtual,
    /// The real one: threads, files, networks.
    Real,
}

/// An item of a place.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its place. [`Partition::ONLY`] for a connector without partitions.
    pub partition: Partition,
    /// Its content.
    pub body: Body,
}

/// The content of an item.
#[derive(Debug, Clone)]
pub enum Body {
    /// An event.
    Event(Event),
    /// Bytes that are no event. Only for connectors that can [hold them](Ability::HoldsMalformed).
    Malformed(Vec<u8>),
    /// A position that is never given. Only for connectors that can [have them](Ability::HasGaps).
    Gap,
}
