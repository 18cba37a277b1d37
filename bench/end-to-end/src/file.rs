//! File to file: the engine, and the floor that reads, parses and writes on one thread.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, ExtraValue},
    handler::pass::PassFactory,
    sink::file::{FileSink, FileSinkOptions},
    source::file::{FileSource, FileSourceOptions},
};

use crate::{Failure, WORKERS, clean};

/// Reads, parses, adds what an output adds, and writes. Synced once, at the end.
pub fn floor(input: &Path, output: &Path) -> Result<u64, Failure> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(input)?);
    let mut writer = BufWriter::with_capacity(256 << 10, File::create(output)?);
    let (mut line, mut out, mut events) = (Vec::new(), Vec::new(), 0);
    let extra = [
        ("greenroompool", ExtraValue::Text("default")),
        ("greenroomattempt", ExtraValue::Integer(1)),
    ];
    while reader.read_until(b'\n', &mut line)? > 0 {
        let event = Event::parse(line.trim_ascii_end())?;
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

/// The engine, in order of the events' subjects or in any order.
pub async fn engine(input: &Path, output: &Path, is_ordered: bool) -> Result<u64, Failure> {
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
    if is_ordered {
        handler.order_by = Some("subject".parse()?);
    }
    let engine = Engine::builder()
        .input(Box::new(FileSource::open(input, FileSourceOptions::default())?))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", handler)
        .output(
            "done",
            vec!["**".parse()?],
            Arc::new(FileSink::open(
                output,
                FileSinkOptions { truncate: true, ..FileSinkOptions::default() },
            )?),
        )
        .dead_letters(Arc::new(FileDeadLetterStore::open(output.with_extension("dead"))?))
        .build()
        .await?;
    clean(&engine.run().await)
}
