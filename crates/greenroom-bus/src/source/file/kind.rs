//! A file as an input of a configuration.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use greenroom_config::{
    At, Listing, duration, flag, options, path, size,
    units::{DAY_MS, GIB},
};

use super::{FileSet, FileSetSource, FileSource, FileSourceOptions, FollowSource};
use crate::{
    BoxFuture,
    kind::{FileRole, FileUse},
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, SourceError, input},
};

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> = input::<FileInput>(
    "file",
    "Reads a file, or several one after the other, from the start or the checkpoint to the end.",
);

options! {
    /// Each line is a CloudEvent (JSON), or a record that `records` turns into an event. Files are
    /// plain, gzip or zstd, recognized by their content.
    pub struct FileInput = "a file input", then FileInput::checked {
        /// The file. `-` is standard input. A directory means its files whose names end in
        /// `.ndjson`, `.jsonl`, `.json`, `.gz` or `.zst` and do not begin with a dot. A pattern
        /// (`events/*.ndjson`) means the matching files, with `*`, `?`, `[ab]` and, for directories
        /// at any depth, `**`. They are read one after the other, in the order of their names; the
        /// list is made at the start, unless files are followed. If a file with exactly this name
        /// exists, the name is not a pattern.
        path: PathBuf = path();
        /// The longest line that is read as an event. A longer line becomes a dead letter with its
        /// first bytes, up to this size, and its length and SHA-256.
        max_event: u64 = size(1024..=GIB).default("16MiB");
        /// A file that remembers which lines are done, so that a later run continues from there. It
        /// is created if it is missing, and can cover several files. Without it, each run reads the
        /// file from its start.
        checkpoint: Option<PathBuf> = path().optional();
        /// With `true`, the file is read as it grows, until a signal: each line when it is
        /// complete. It may be missing, renamed, truncated or replaced (docs/follow.md). In a
        /// directory or pattern, new files are read too.
        follow: bool = flag().default("false");
        /// How often a followed file is checked.
        poll: Duration = duration(1..=DAY_MS).default("200ms");
    }
}

impl InputKind for FileInput {
    fn record(&self) -> Option<RecordShape> {
        Some(RecordShape { one: "a line", parts: &["pointer", "path"] })
    }

    fn keeps_positions(&self) -> bool {
        self.checkpoint.is_some()
    }

    fn files(&self) -> Vec<FileUse<'_>> {
        let path = &*self.path;
        let read = FileUse { option: "path", path, role: FileRole::Read { waits: self.follow } };
        let kept = self.checkpoint.as_deref().map(|kept| FileUse {
            option: "checkpoint",
            path: kept,
            role: FileRole::Checkpoint { of: path },
        });
        [read].into_iter().chain(kept).collect()
    }

    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async { self.source(setup, false).map(OpenInput::boxed) })
    }

    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async { self.source(setup, true) })
    }

    fn looked(&self) -> Option<&'static str> {
        self.is_standard()
            .then_some("what was read from standard input is gone: it cannot be read again")
    }
}

impl FileInput {
    /// It reads standard input.
    fn is_standard(&self) -> bool {
        self.path == Path::new("-")
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if self.is_standard() && self.checkpoint.is_some() {
            let text = "standard input cannot be read again, so it has no checkpoint";
            at.error("checkpoint", text, "read a file, or leave `checkpoint` out");
        }
        if self.is_standard() && self.follow {
            let text = "standard input cannot be followed: it is read until it closes anyway";
            at.error("follow", text, "leave `follow` out");
        } else if !self.follow && at.has("poll") {
            let text = "`poll` is for a file that is followed";
            at.error("poll", text, "set `follow: true`, or leave `poll` out");
        }
        Some(self)
    }

    /// One file, or several as one input.
    fn source(&self, setup: &InputSetup, looks: bool) -> Result<Box<dyn Source>, String> {
        let options = FileSourceOptions {
            max_event: usize::try_from(self.max_event).unwrap_or(usize::MAX),
            records: setup.records.clone().map(Arc::new),
        };
        let source = match self.follow {
            true => self.followed(options, looks),
            false => {
                let path = self.path.display();
                let set = FileSet::find(&self.path).map_err(|why| format!("file:{path}: {why}"))?;
                self.read(set, options, looks)
            }
        };
        source.map_err(|error| error.to_string())
    }

    fn read(
        &self,
        set: Option<FileSet>,
        options: FileSourceOptions,
        looks: bool,
    ) -> Result<Box<dyn Source>, SourceError> {
        let path = &self.path;
        match (set, &self.checkpoint) {
            (None, None) => FileSource::open(path, options).map(boxed),
            (None, Some(kept)) if looks => FileSource::looking(path, kept, options).map(boxed),
            (None, Some(kept)) => FileSource::with_checkpoint(path, kept, options).map(boxed),
            (Some(set), None) => FileSetSource::open(path, &set, options).map(boxed),
            (Some(set), Some(kept)) if looks => {
                FileSetSource::looking(path, &set, kept, options).map(boxed)
            }
            (Some(set), Some(kept)) => {
                FileSetSource::with_checkpoint(path, &set, kept, options).map(boxed)
            }
        }
    }

    /// What grows.
    fn followed(
        &self,
        options: FileSourceOptions,
        looks: bool,
    ) -> Result<Box<dyn Source>, SourceError> {
        let Self { path, checkpoint, poll, .. } = self;
        match checkpoint {
            _ if looks => FollowSource::looking(path, checkpoint.as_deref(), options).map(boxed),
            Some(kept) => FollowSource::with_checkpoint(path, kept, *poll, options).map(boxed),
            None => FollowSource::open(path, *poll, options).map(boxed),
        }
    }
}

fn boxed(source: impl Source) -> Box<dyn Source> {
    Box::new(source)
}
