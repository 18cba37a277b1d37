//! Where handled events go.

use std::path::Path;

use greenroom_config::{Chosen, each, options, texts};

use super::condition::FieldCondition;
use crate::config::kinds::Outputs;

options! {
    /// Where handled events go: exactly one kind.
    pub struct OutputConfig named name = "an output" {
        /// The event types: a type, a pattern or a list, as for handlers.
        on: Vec<String> = texts().default("\"**\"");
        /// Of these, the events to take by what is in them, as for handlers: `{ /total: { greater:
        /// 100 } }`. An event that is not taken goes to the next output that takes it.
        conditions as "where": Vec<FieldCondition> = each().or_empty();
        .. /// What it writes to.
        kind: Chosen<Outputs>;
    }
}

impl OutputConfig {
    /// The file that it writes to, where it does.
    pub fn path(&self) -> Option<&Path> {
        self.kind.writes().map(|file| file.path)
    }

    /// It writes to standard output.
    pub fn is_standard(&self) -> bool {
        self.path() == Some(Path::new("-"))
    }
}
