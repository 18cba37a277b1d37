//! The form of a line: a CloudEvent, or a record that a rule maps to one.

use std::{fmt, fs::File, path::Path, sync::Arc};

use bytes::Bytes;

use super::identity;
use crate::{
    event::Event,
    record::{Mapping, Record},
    source::Malformed,
};

/// The form of an event in the file.
pub(super) struct Form {
    /// The longest line.
    pub(super) max_event: usize,
    records: Option<Records>,
}

struct Records {
    mapping: Arc<Mapping>,
    path: String,
    /// The identity of the file: the beginning of derived ids.
    file: String,
}

impl Form {
    /// Of lines of this file, or of something that has only a path.
    pub(super) fn new(
        max_event: usize,
        records: Option<Arc<Mapping>>,
        path: &Path,
        file: Option<&File>,
    ) -> Self {
        let path = path.display().to_string();
        let number = file.and_then(identity::number);
        let file = number.map_or_else(|| path.clone(), |number| format!("{number:x}"));
        let records = records.map(|mapping| Records { mapping, path, file });
        Self { max_event, records }
    }

    /// Whether lines are read as JSON; a record whose rule asks nothing of its value is not.
    pub(super) fn parses(&self) -> bool {
        self.records.as_ref().is_none_or(|records| records.mapping.parses())
    }

    /// The event of a line, without its end; `None` for a blank one.
    pub(super) fn event(&self, line: &[u8], number: u64) -> Option<Result<Event, Malformed>> {
        let malformed = |why: String| Malformed::new(line.to_vec(), why);
        let is_blank = || line.trim_ascii().is_empty();
        match &self.records {
            None => match Event::parse(line) {
                Ok(event) => Some(Ok(event)),
                Err(_) if is_blank() => None,
                Err(error) => Some(Err(malformed(error.to_string()))),
            },
            Some(_) if is_blank() => None,
            Some(records) => {
                let position = Position { file: &records.file, line: number, bytes: line };
                let value = Bytes::copy_from_slice(line);
                let record = Record { path: Some(&records.path), ..Record::new(value, &position) };
                Some(records.mapping.event(&record).map_err(|why| malformed(why.to_string())))
            }
        }
    }
}

/// The position of a line and proof of its content: a rewritten file has a different line there.
struct Position<'l> {
    file: &'l str,
    line: u64,
    bytes: &'l [u8],
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:08x}", self.file, self.line, crc32fast::hash(self.bytes))
    }
}
