//! Files (B01): plain and gzip, with and without a checkpoint.

use std::{fs::File, io::Write, path::PathBuf, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use greenroom_bus::{
    BoxFuture,
    source::{
        Partition, Source,
        file::{FileSource, FileSourceOptions},
    },
    watermark::Positions,
};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Check, Connector, Item, Place, Stored, not_applicable},
};
use tempfile::TempDir;

conformance!(plain: Files { is_compressed: false, has_checkpoint: false });
conformance!(gzip: Files { is_compressed: true, has_checkpoint: false });
conformance!(plain_with_checkpoint: Files { is_compressed: false, has_checkpoint: true });
conformance!(gzip_with_checkpoint: Files { is_compressed: true, has_checkpoint: true });

#[derive(Clone, Copy)]
struct Files {
    is_compressed: bool,
    has_checkpoint: bool,
}

impl Connector for Files {
    fn name(&self) -> String {
        let form = if self.is_compressed { "gzip file" } else { "file" };
        let kept = if self.has_checkpoint { " with a checkpoint" } else { "" };
        format!("{form}{kept}")
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Partitions | Ability::Revokes => Some("a file is one partition"),
            Ability::IsLive => Some("a file is read to the end that it had when it was opened"),
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
    fn events(&self) -> PathBuf {
        self.directory.path().join("events.ndjson")
    }

    fn checkpoint(&self) -> PathBuf {
        self.directory.path().join("events.checkpoint")
    }

    /// Appends these lines; of a compressed file as a member of its own.
    fn append(&self, lines: &[u8]) -> std::io::Result<()> {
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

    fn source(&self) -> Result<FileSource, String> {
        let (events, options) = (self.events(), FileSourceOptions::default());
        let source = match self.files.has_checkpoint {
            true => FileSource::with_checkpoint(events, self.checkpoint(), options),
            false => FileSource::open(events, options),
        };
        source.map_err(|error| error.to_string())
    }
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
        let source = self.source().map(|source| Box::new(source) as _);
        Box::pin(std::future::ready(source))
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
    let (of, mut at) = (&stored["of"], 0);
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
    let told = |has_checkpoint, check| {
        not_applicable(&Files { is_compressed: false, has_checkpoint }, check)
    };
    let revoke = told(true, Check::RevokeDuringLoad).unwrap();
    assert!(revoke.ends_with("a file is one partition"), "{revoke}");
    let lacks = |has_checkpoint| {
        Check::ALL.map(|check| told(has_checkpoint, check)).iter().flatten().count()
    };
    assert_eq!((lacks(true), lacks(false)), (1, 2));
}
