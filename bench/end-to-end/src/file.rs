//! File to file: the engine, and the floor that reads, parses and writes on one thread.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, ExtraValue},
    handler::{discard::DiscardFactory, pass::PassFactory},
    record::{Mapping, Pick, Record},
    sink::file::{FileOutput, FileSink},
    source::file::{FileSource, FileSourceOptions},
};

use crate::{Failure, WORKERS, clean};

/// What the lines of the input are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// CloudEvents, which are parsed.
    Events,
    /// Payloads of whatever kind, which nobody parses.
    Payloads,
}

impl Lines {
    /// The rule that makes events of payloads.
    fn records(self) -> Option<Mapping> {
        let mapping = || {
            Mapping::new(Pick::literal("bench.raw"), Pick::literal("/bench"))
                .content_type(Pick::literal("text/plain"))
        };
        (self == Self::Payloads).then(mapping)
    }
}

/// Reads, makes events, adds what an output adds, and writes. Synced once, at the end.
pub fn floor(input: &Path, output: &Path, lines: Lines) -> Result<u64, Failure> {
    let records = lines.records();
    let mut reader = BufReader::with_capacity(256 << 10, File::open(input)?);
    let mut writer = BufWriter::with_capacity(256 << 10, File::create(output)?);
    let (mut line, mut out, mut events) = (Vec::new(), Vec::new(), 0_u64);
    let extra = [
        ("greenroompool", ExtraValue::Text("default")),
        ("greenroomattempt", ExtraValue::Integer(1)),
    ];
    while reader.read_until(b'\n', &mut line)? > 0 {
        let bytes = line.trim_ascii_end();
        let event = match &records {
            None => Event::parse(bytes)?,
            Some(mapping) => mapping.event(&Record::new(Bytes::copy_from_slice(bytes), &events))?,
        };
        event.write_json_with(&extra, &mut out);
        out.push(b'\n');
        writer.write_all(&out)?;
        out.clear();
        line.clear();
        events += 1;
    }
    writer.into_inner().map_err(|error| error.into_error())?.sync_data()?;
    Ok(events)
}

/// Reads and parses, and does no more.
pub fn read_and_parse(input: &Path) -> Result<u64, Failure> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(input)?);
    let (mut line, mut events) = (Vec::new(), 0_u64);
    while reader.read_until(b'\n', &mut line)? > 0 {
        std::hint::black_box(Event::parse(line.trim_ascii_end())?);
        line.clear();
        events += 1;
    }
    Ok(events)
}

/// The engine, with a handler that does nothing and no output: what it takes to read and to parse.
pub async fn to_nowhere(input: &Path, dead_letters: &Path) -> Result<u64, Failure> {
    let engine = Engine::builder()
        .input(Box::new(FileSource::open(input, FileSourceOptions::default())?))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", HandlerConfig::new(vec!["**".parse()?], Arc::new(DiscardFactory)))
        .dead_letters(Arc::new(FileDeadLetterStore::open(dead_letters)?))
        .build()
        .await?;
    clean(&engine.run().await)
}

/// The engine, in order of the events' subjects or in any order.
pub async fn engine(
    input: &Path,
    output: &Path,
    lines: Lines,
    is_ordered: bool,
) -> Result<u64, Failure> {
    let records = lines.records().map(Arc::new);
    let options = FileSourceOptions { records, ..FileSourceOptions::default() };
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
    if is_ordered {
        handler.order_by = Some("subject".parse()?);
    }
    let engine = Engine::builder()
        .input(Box::new(FileSource::open(input, options)?))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", handler)
        .output(
            "done",
            vec!["**".parse()?],
            Arc::new(FileSink::open(&FileOutput { truncate: true, ..FileOutput::new(output) })?),
        )
        .dead_letters(Arc::new(FileDeadLetterStore::open(output.with_extension("dead"))?))
        .build()
        .await?;
    clean(&engine.run().await)
}
