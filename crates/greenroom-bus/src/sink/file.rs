//! Events into a file, one a line, in the order in which they were handled (B05, C12).

mod kind;
mod options;

use std::{io, time::Duration};

pub use self::{kind::OUTPUT, options::FileOutput};
use super::{
    Outgoing, Sink, SinkError,
    line_writer::{DrainBuffer, Line, LineWriter},
    rotate::RotatingFile,
    storage::{AppendFile, StandardOutput, Storage},
};
use crate::{BoxFuture, event::ExtraValue, settlement::Ack};

/// An input waits for confirmations from here, so a line that comes alone is synced at once.
const PAUSE: Duration = Duration::from_millis(1);

/// Writes each event as a line of NDJSON, with the extension attributes
/// `greenroompool` and `greenroomattempt`.
///
/// An event is confirmed when its line is synced to the disk; many lines share a sync. Memory: at
/// most 8,192 lines and 8 MiB are queued, or one larger line. When the file cannot be written any
/// more it is cut back to its confirmed lines; the rest, and all later events, are refused.
///
/// No other process may write the file. If it was renamed or removed, that is noticed before the
/// next confirmation: unconfirmed lines go to a new file at its path, and so do all later ones. A
/// file that [rotates](super::Rotate) does so between two lines, once all earlier ones are
/// confirmed.
pub struct FileSink {
    writer: LineWriter<Outgoing>,
}

impl FileSink {
    /// Opens or creates a file; `-` is standard output, for which the other options mean nothing:
    /// an event is confirmed once it is written there, and synced if that is a regular file.
    /// Elsewhere a torn last line, left by a crash, is cut off: it was never confirmed.
    ///
    /// # Errors
    /// The file cannot be opened for writing, ends in something that is no torn event, is to rotate
    /// and no regular file, or another process writes it.
    pub fn open(output: &FileOutput) -> Result<Self, SinkError> {
        let FileOutput { path, truncate, rotate } = output;
        let name = format!("file:{}", path.display());
        let started = if path.as_os_str() == "-" {
            StandardOutput::open().and_then(|output| Self::start(&name, output))
        } else {
            AppendFile::open(path, *truncate).and_then(|file| match rotate {
                None => Self::start(&name, file),
                Some(rotate) => Self::start(&name, RotatingFile::new(file, path, *rotate)?),
            })
        };
        started.map_err(|error| cannot_open(name, &error))
    }

    fn start(name: &str, storage: impl Storage) -> io::Result<Self> {
        Ok(Self { writer: LineWriter::start(name.to_owned(), storage, PAUSE)? })
    }
}

/// The error of a file that cannot be opened.
pub(crate) fn cannot_open(name: String, error: &io::Error) -> SinkError {
    let next = match error.kind() {
        io::ErrorKind::ResourceBusy => "wait for its end, or choose another path",
        _ => "check the path and its permissions",
    };
    SinkError::new(name, format!("cannot be opened for writing: {error}; {next}"))
}

impl Sink for FileSink {
    fn describe(&self) -> String {
        self.writer.name().to_owned()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        self.writer.try_accept(outgoing)
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        Box::pin(self.writer.accept(outgoing))
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.writer.finish())
    }

    fn failure(&self) -> Option<SinkError> {
        self.writer.failure()
    }

    fn reopen(&self) {
        self.writer.reopen();
    }

    fn remark(&self) -> Option<String> {
        self.writer.remark()
    }
}

impl Line for Outgoing {
    fn bytes(&self) -> usize {
        self.event.approximate_bytes()
    }

    fn write(&self, out: &mut Vec<u8>, _: &mut DrainBuffer<'_>) -> io::Result<()> {
        let extra = [
            ("greenroompool", ExtraValue::Text(&self.pool)),
            ("greenroomattempt", ExtraValue::Integer(self.attempt.into())),
        ];
        self.event.write_json_with(&extra, out);
        Ok(())
    }

    fn fetch(&self) -> u8 {
        self.event.fetch_data()
    }

    fn into_ack(self) -> Ack {
        self.ack
    }
}

#[cfg(test)]
mod tests;
