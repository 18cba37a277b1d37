//! What a program asks of the options of an input.

use std::{
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use greenroom_config::{AnyOptions, At};

use super::Source;
use crate::{
    BoxFuture,
    kind::{FileUse, Live},
    record::Mapping,
};

/// The options of an input of one kind. Its own checks are in its declaration (`then`); those that
/// look at several inputs, or outside of the file, ask these methods.
pub trait InputKind: AnyOptions {
    /// The records that `records` makes events of. `None`: it gives events.
    fn record(&self) -> Option<RecordShape>;

    /// Why its records have not a part that those of its kind may have, and what to do.
    fn lacks(&self, part: &str) -> Option<(&'static str, &'static str)> {
        let _ = part;
        None
    }

    /// A later run goes on where this one ends.
    fn keeps_positions(&self) -> bool;

    /// The types of all its events, where they are known. `of_records`: the type that `records`
    /// gives them, if it is one.
    fn types<'a>(&'a self, of_records: Option<&'a str>) -> Option<Vec<&'a str>> {
        of_records.map(|ty| vec![ty])
    }

    /// The files that it reads, and those that it keeps positions or events in. Certificates are
    /// looked at by [`reach`](Self::reach).
    fn files(&self) -> Vec<FileUse<'_>> {
        Vec::new()
    }

    /// The address that it listens at.
    fn listens(&self) -> Option<SocketAddr> {
        None
    }

    /// Reports what else cannot be used of what lies outside of the configuration: certificates,
    /// properties of a library. No server is asked.
    fn reach(&self, at: &mut At<'_>) {
        let _ = at;
    }

    /// Opens the source, on the runtime of the engine.
    ///
    /// # Errors
    /// What could not be opened, and what to do next.
    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>>;

    /// As [`open`](Self::open), for a caller that only looks, up to what is there now: nothing is
    /// settled or written, no group is joined, and no connection is accepted.
    ///
    /// # Errors
    /// What could not be opened, and what to do next.
    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>>;

    /// What a look leaves out, or takes away.
    fn looked(&self) -> Option<&'static str> {
        None
    }
}

greenroom_config::kinds! {
    /// A kind of input, by its key, with a sentence on what it is for.
    pub fn input: dyn InputKind;
}

/// What an input is opened with, beside its own options.
#[derive(Debug, Clone)]
pub struct InputSetup {
    /// Its name.
    pub name: String,
    /// The rule that makes events of records.
    pub records: Option<Mapping>,
    /// How many of its events may be held at once: beside full pools, and in all pools.
    pub room: usize,
}

/// An input that was opened.
pub struct OpenInput {
    /// What the engine reads.
    pub source: Box<dyn Source>,
    /// The server of an input that others send to.
    pub server: Option<Arc<dyn InputServer>>,
    /// What carries its live options out, if it has any.
    pub live: Option<Weak<dyn Live>>,
}

impl OpenInput {
    /// One that nobody sends to, whose options do not change.
    pub fn reads(source: impl Source) -> Self {
        Self::boxed(Box::new(source))
    }

    /// As [`reads`](Self::reads).
    pub fn boxed(source: Box<dyn Source>) -> Self {
        Self { source, server: None, live: None }
    }
}

/// The server of an input that others send to.
pub trait InputServer: Send + Sync {
    /// Takes nothing more. What is being stored is stored and answered.
    fn close(&self);

    /// Closes, and waits until what was being stored is answered, but no longer than this.
    fn answered(&self, within: Duration) -> BoxFuture<'_, ()>;

    /// As [`answered`](Self::answered), and until nothing more is written. With its source ended,
    /// another input can have its address and its files then.
    fn ended(&self, within: Duration) -> BoxFuture<'_, ()>;

    /// How many requests it has answered with each status.
    fn answers(&self) -> Vec<(u16, u64)>;

    /// What of it finds no room, and why.
    fn trouble(&self) -> Option<String>;
}

/// What records look like to a rule that makes events of them.
#[derive(Debug, Clone, Copy)]
pub struct RecordShape {
    /// One of them, with an article.
    pub one: &'static str,
    /// What an attribute can be taken from, as `records` calls it.
    pub parts: &'static [&'static str],
}
