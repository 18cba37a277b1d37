//! Files (B01): plain and gzip, with and without a checkpoint.

use std::{fs::File, io::Write, path::PathBuf, sync::Arc, time::Duration};

use flate2::{Compression, write::GzEncoder};
use greenroom_bus::{
    BoxFuture,
    source::{
        Partition, Source,
        file::{FileSource, FileSourceOptions, FollowSource},
    },
    watermark::Positions,
};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Check, Connector, Item, Place, Stored, not_applicable},
};
use tempfile::TempDir;

conformance!(plain: Files::READ);
conformance!(gzip: Files { is_compressed: true, ..Files::READ });
conformance!(plain_with_checkpoint: Files { has_checkpoint: true, ..Files::READ });
conformance!(gzip_with_checkpoint: Files { is_compressed: true, has_checkpoint: true, ..Files::READ });
conformance!(followed: Files { is_followed: true, ..Files::READ });
conformance!(followed_with_checkpoint: Files { is_followed: true, has_checkpoint: true, ..Files::READ });
conformance!(followed_and_rotated: Files { is_followed: true, is_rotated: true, ..Files::READ });

/// Between looks at a file that is followed.
const POLL: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
struct Files {
    is_compressed: bool,
    has_checkpoint: bool,
    is_followed: bool,
    /// Each time that something is published, a new file takes the place of the last.
    is_rotated: bool,
}

impl Files {
    const READ: Self =
        Self { is_compressed: false, has_checkpoint: false, is_followed: false, is_rotated: false };
}

impl Connector for Files {
    fn name(&self) -> String {
        let form = match self {
            Self { is_compressed: true, .. } => "gzip file",
            Self { is_rotated: true, .. } => "rotated file that is followed",
            Self { is_followed: true, .. } => "file that is followed",
            _ => "file",
        };
        let kept = if self.has_checkpoint { " with a checkpoint" } else { "" };
        format!("{form}{kept}")
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Partitions | Ability::Revokes => Some("a file is one partition"),
            Ability::IsLive if !self.is_followed => {
                Some("a file is read to the end that it had when it was opened")
            }
            Ability::KeepsPositions if !self.has_checkpoint => {
                Some("without a checkpoint, a file is read from its start")
            }
            _ => None,
        }
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Box::new(FilePlace { files: *self, directory }))
    }
}

/// A directory with a file of events, and its checkpoint.
struct FilePlace {
    files: Files,
    directory: TempDir,
}

impl FilePlace {
    fn rotate(&self) {
        let count = std::fs::read_dir(self.directory.path()).map_or(0, Iterator::count);
        if self.files.is_rotated && self.events().exists() {
            let old = self.directory.path().join(format!("events.ndjson.{count:06}"));
            // So that the clock of the file system tells them apart.
            std::thread::sleep(Duration::from_millis(12));
            std::fs::rename(self.events(), old).unwrap();
        }
    }

    fn events(&self) -> PathBuf {
        self.directory.path().join("events.ndjson")
    }

    fn checkpoint(&self) -> PathBuf {
        self.directory.path().join("events.checkpoint")
    }

    /// Appends these lines; of a compressed file as a member of its own.
    fn append(&self, lines: &[u8]) -> std::io::Result<()> {
        self.rotate();
        let mut file = File::options().create(true).append(true).open(self.events())?;
        match self.files.is_compressed {
            true => {
                let mut member = GzEncoder::new(&mut file, Compression::fast());
                member.write_all(lines)?;
                member.finish().map(drop)
            }
            false => file.write_all(lines),
        }
    }

    fn source(&self) -> Result<Box<dyn Source>, String> {
        let (events, options) = (self.events(), FileSourceOptions::default());
        let source = match (self.files.has_checkpoint, self.files.is_followed) {
            (true, false) => {
                FileSource::with_checkpoint(events, self.checkpoint(), options).map(boxed)
            }
            (false, false) => FileSource::open(events, options).map(boxed),
            (true, true) => {
                FollowSource::with_checkpoint(events, self.checkpoint(), POLL, options).map(boxed)
            }
            (false, true) => {
                let all = self.directory.path().join("events.ndjson*");
                let path = if self.files.is_rotated { all } else { events };
                FollowSource::open(path, POLL, options).map(boxed)
            }
        };
        source.map_err(|error| error.to_string())
    }
}

fn boxed(source: impl Source) -> Box<dyn Source> {
    Box::new(source)
}

fn lines(items: &[Item]) -> Vec<u8> {
    let mut lines = Vec::new();
    for item in items {
        match &item.body {
            Body::Event(event) => event.write_json(&mut lines),
            Body::Malformed(raw) => lines.extend(raw),
            // A blank line counts, and is skipped.
            Body::Gap => {}
        }
        lines.push(b'\n');
    }
    lines
}

impl Place for FilePlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        let appended = self.append(&lines(items)).map_err(|error| error.to_string());
        Box::pin(std::future::ready(appended))
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(std::future::ready(self.source()))
    }

    fn stored(&self) -> Option<Stored> {
        let checkpoint = self.checkpoint();
        self.files.has_checkpoint.then(|| Arc::new(move || stored(&checkpoint)) as _)
    }
}

/// Above all lines that were taken, and the turns of those that are done and those that are open.
fn stored(checkpoint: &std::path::Path) -> Vec<(Partition, Positions)> {
    let Ok(text) = std::fs::read(checkpoint) else { return Vec::new() };
    let stored: serde_json::Value = serde_json::from_slice(&text).unwrap();
    // What is followed is of the form of several files.
    let of = match stored["of"]["files"].as_array() {
        Some(files) => match files.first() {
            Some(file) => file,
            None => return Vec::new(),
        },
        None => &stored["of"],
    };
    let mut at = 0;
    let turns: Vec<u64> = serde_json::from_value(of["open"].clone()).unwrap();
    let open = turns.chunks(2).map(|turn| {
        let start = at + turn[0];
        at = start + turn[1];
        start..at
    });
    let positions = Positions::new(of["next"].as_u64().unwrap(), open).unwrap();
    vec![(Partition::ONLY, positions)]
}

#[test]
fn v01_what_a_file_cannot_do_is_told() {
    let told =
        |has_checkpoint, check| not_applicable(&Files { has_checkpoint, ..Files::READ }, check);
    let revoke = told(true, Check::RevokeDuringLoad).unwrap();
    assert!(revoke.ends_with("a file is one partition"), "{revoke}");
    let lacks = |has_checkpoint| {
        Check::ALL.map(|check| told(has_checkpoint, check)).iter().flatten().count()
    };
    assert_eq!((lacks(true), lacks(false)), (1, 2));
}
