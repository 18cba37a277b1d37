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
        /// Among these, the events to take by their content, as for handlers: `{ /total: { greater:
        /// 100 } }`. A rejected event goes to the next output that takes it.
        conditions as "where": Vec<FieldCondition> = each().or_empty();
        .. /// What it writes to.
        kind: Chosen<Outputs>;
    }
}

impl OutputConfig {
    /// The file that it writes to, if any.
    pub fn path(&self) -> Option<&Path> {
        self.kind.writes().map(|file| file.path)
    }

    /// Whether it writes to standard output.
    pub fn is_standard(&self) -> bool {
        self.path() == Some(Path::new("-"))
    }
}
