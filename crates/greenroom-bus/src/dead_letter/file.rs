//! Dead letters in a file, one a line (D06).

use std::{io, path::Path, time::Duration};

use super::{DeadLetter, DeadLetterStore, OutputRejection};
use crate::{
    BoxFuture,
    event::{rfc3339::format_utc, write_bare_base64, write_integer, write_text},
    settlement::Ack,
    sink::{
        Rotate, SinkError,
        file::cannot_open,
        line_writer::{DrainBuffer, Line, LineWriter},
        rotate::RotatingFile,
        storage::AppendFile,
    },
};

/// No handler and no key waits for a letter, but a sync for each takes processor time from the
/// handlers: at 200 letters a second, a tenth of another pool's p99 (`bench/isolation`).
const PAUSE: Duration = Duration::from_millis(10);

/// Raw bytes are encoded in pieces of this size: a multiple of three, so that the pieces put
/// together are the whole.
const RAW_PIECE: usize = 3 * 64 * 1024;

/// Writes each dead letter as a line of NDJSON, with all fields in every line, null if empty:
/// `event`, `raw_base64`, `reason`, `error`, `attempts`, `first_at`, `last_at`, `input`, `source`,
/// `position`, `pool`, `handler`, `key`, `trace_id`, `rejected_by`. Times are RFC 3339 in UTC.
/// `key` is the key by which its handler orders it. `trace_id` is that of the event's
/// `traceparent`. `rejected_by` is a list of rejections by outputs: `output`, `error`, and the
/// `event` that was made for it, null if that is the letter's own.
///
/// A letter is confirmed when its line is synced to the disk: some 20 ms after it came, or up to
/// 100 ms if letters keep coming, so that many share a sync. No other process may write the file in
/// that time. A file without letters is removed at the end.
pub struct FileDeadLetterStore {
    writer: LineWriter<DeadLetter>,
}

impl FileDeadLetterStore {
    /// Opens the file, or makes it. A torn last line, left by a crash, is cut
    /// off: it was never confirmed.
    ///
    /// # Errors
    /// Its directory is missing or not writable, the file ends in something other than a torn
    /// letter, or another process writes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SinkError> {
        Self::start(path.as_ref(), None)
    }

    /// Like [`open`](Self::open), of a file that rotates.
    ///
    /// # Errors
    /// As there; or it is no regular file.
    pub fn rotating(path: impl AsRef<Path>, rotate: Rotate) -> Result<Self, SinkError> {
        Self::start(path.as_ref(), Some(rotate))
    }

    fn start(path: &Path, rotate: Option<Rotate>) -> Result<Self, SinkError> {
        let name = format!("file:{}", path.display());
        let started = AppendFile::open_unless_empty(path).and_then(|file| match rotate {
            None => LineWriter::start(name.clone(), file, PAUSE),
            Some(rotate) => {
                let file = RotatingFile::new(file, path, rotate)?;
                LineWriter::start(name.clone(), file, PAUSE)
            }
        });
        Ok(Self { writer: started.map_err(|error| cannot_open(name, &error))? })
    }
}

impl DeadLetterStore for FileDeadLetterStore {
    fn describe(&self) -> String {
        self.writer.name().to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        self.writer.accept_beyond_bounds(letter);
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

impl Line for DeadLetter {
    fn bytes(&self) -> usize {
        self.approximate_bytes()
    }

    /// Raw bytes may be many: they are passed on in pieces, so that there is never a second copy of
    /// them.
    fn write(&self, out: &mut Vec<u8>, pass: &mut DrainBuffer<'_>) -> io::Result<()> {
        out.extend_from_slice(b"{\"event\":");
        optional(self.event.as_ref(), out, |event, out| event.write_json(out));
        out.extend_from_slice(b",\"raw_base64\":");
        match &self.raw {
            None => out.extend_from_slice(b"null"),
            Some(raw) => {
                out.push(b'"');
                for piece in raw.chunks(RAW_PIECE) {
                    write_bare_base64(piece, out);
                    pass(out)?;
                }
                out.push(b'"');
            }
        }
        text("reason", self.reason.as_str(), out);
        text("error", &self.error, out);
        out.extend_from_slice(b",\"attempts\":");
        write_integer(self.attempts, out);
        text("first_at", &format_utc(self.first_at), out);
        text("last_at", &format_utc(self.last_at), out);
        text("input", &self.input, out);
        text("source", &self.source, out);
        out.extend_from_slice(b",\"position\":");
        write_integer(self.position, out);
        out.extend_from_slice(b",\"pool\":");
        optional(self.pool.as_deref(), out, write_text);
        out.extend_from_slice(b",\"handler\":");
        optional(self.handler.as_deref(), out, write_text);
        out.extend_from_slice(b",\"key\":");
        optional(self.key.as_deref(), out, write_text);
        out.extend_from_slice(b",\"share\":");
        optional(self.share.as_deref(), out, write_text);
        out.extend_from_slice(b",\"trace_id\":");
        optional(self.trace_id(), out, write_text);
        out.extend_from_slice(b",\"rejected_by\":");
        let rejected = Some(&*self.rejected).filter(|rejected| !rejected.is_empty());
        optional(rejected, out, write_rejected);
        out.push(b'}');
        Ok(())
    }

    fn into_ack(self) -> Ack {
        self.ack
    }
}

impl DeadLetter {
    /// Appends the letter as a JSON object, with the fields of a line of [`FileDeadLetterStore`].
    pub fn write_json(&self, out: &mut Vec<u8>) {
        // Nothing is passed on, so nothing can fail.
        let _ = self.write(out, &mut |_| Ok(()));
    }

    /// When it was taken from its source, and when it was given up: RFC 3339 in UTC.
    pub fn moments(&self) -> [String; 2] {
        [self.first_at, self.last_at].map(format_utc)
    }

    /// Rejections by outputs, as the JSON of `rejected_by`; `None` if there are none.
    pub fn rejected_json(&self) -> Option<String> {
        let mut json = Vec::new();
        write_rejected(&self.rejected, &mut json);
        String::from_utf8(json).ok().filter(|_| !self.rejected.is_empty())
    }
}

pub(crate) fn write_rejected(rejected: &[OutputRejection], out: &mut Vec<u8>) {
    for (place, OutputRejection { output, event, error }) in rejected.iter().enumerate() {
        out.push(if place == 0 { b'[' } else { b',' });
        out.extend_from_slice(b"{\"output\":");
        write_text(output, out);
        text("error", error, out);
        out.extend_from_slice(b",\"event\":");
        optional(event.as_ref(), out, |event, out| event.write_json(out));
        out.push(b'}');
    }
    out.push(b']');
}

fn text(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(b',');
    write_text(name, out);
    out.push(b':');
    write_text(value, out);
}

fn optional<T: ?Sized>(value: Option<&T>, out: &mut Vec<u8>, write: impl FnOnce(&T, &mut Vec<u8>)) {
    match value {
        Some(value) => write(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests;
