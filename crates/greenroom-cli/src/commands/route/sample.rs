//! Sample events: one or more JSON values, each an event or a list of events, with any white space
//! in between: a pretty-printed event, a file with one event per line, or a batch. For an input
//! with a rule for records, each line is one of these; for an `http` input with a rule, or with
//! headers, the sample is the body of a request, which is read as the input would.

use std::{
    fs,
    io::{self, Read},
    path::Path,
    str,
};

use bytes::Bytes;
use greenroom_bus::{
    event::Event,
    record::Record,
    source::http::{self, HttpInput, Message, Reading},
};
use serde_json::value::RawValue;

use crate::{cli::Header, config::RecordsConfig};

/// The form of a sample.
pub(super) enum Sample<'s> {
    /// CloudEvents as JSON.
    Events,
    /// Lines that the rule turns into events.
    Lines(&'s RecordsConfig),
    /// The body of a request to an `http` input.
    Request(SampleRequest<'s>),
}

/// A request without its body.
pub(super) struct SampleRequest<'s> {
    pub(super) input: &'s HttpInput,
    pub(super) records: Option<&'s RecordsConfig>,
    /// By default, that of the input.
    pub(super) path: Option<&'s str>,
    pub(super) headers: &'s [Header],
}

/// Reads the events of a file; `-` is standard input.
pub(super) fn read(path: &Path, sample: &Sample<'_>) -> Result<Vec<Event>, String> {
    let shown = match path == Path::new("-") {
        true => "standard input".into(),
        false => path.to_string_lossy(),
    };
    let bytes =
        bytes_of(path).map_err(|error| format!("cannot read the sample {shown}: {error}"))?;
    let (events, holds) = match sample {
        Sample::Lines(records) => (
            of_records(&bytes, records, path),
            "each line is a record that `records` turns into an event",
        ),
        Sample::Request(request) => (
            request.events(bytes),
            "it is the body of a request; `--header` and `--path` are its other parts",
        ),
        Sample::Events => (
            str::from_utf8(&bytes).map_err(|error| error.to_string()).and_then(parse),
            "it must hold one or more CloudEvents as JSON",
        ),
    };
    let events =
        events.map_err(|why| format!("the sample {shown} cannot be read: {why}; {holds}"))?;
    match events.is_empty() {
        true => Err(format!("the sample {shown} holds no event")),
        false => Ok(events),
    }
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl SampleRequest<'_> {
    /// Reads them like the input. The sender and the size of the body are not checked here.
    fn events(&self, body: Vec<u8>) -> Result<Vec<Event>, String> {
        let mapping = self.records.map(RecordsConfig::mapping).transpose()?;
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let reading = Reading {
            records: mapping.as_ref(),
            max_event: bytes(self.input.max_event),
            max_batch: self.input.max_batch,
        };
        let headers: Vec<_> =
            self.headers.iter().map(|header| (&*header.name, header.value.as_bytes())).collect();
        let path = self.path.unwrap_or(&self.input.path);
        let message = Message { path, headers: &headers, body: &Bytes::from(body) };
        http::read(&message, &reading).map_err(|why| why.to_string())
    }
}

/// Derived ids are line numbers here: those of a run depend on its file.
fn of_records(bytes: &[u8], records: &RecordsConfig, path: &Path) -> Result<Vec<Event>, String> {
    let mapping = records.mapping()?;
    let path = path.display().to_string();
    let mut events = Vec::new();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1_u64..) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value = Bytes::copy_from_slice(line);
        let record = Record { path: Some(&path), ..Record::new(value, &number) };
        events.push(mapping.event(&record).map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(events)
}

fn parse(text: &str) -> Result<Vec<Event>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut events = Vec::new();
    for (place, value) in serde_json::Deserializer::from_str(text).into_iter().enumerate() {
        let value: &RawValue = value.map_err(|error| error.to_string())?;
        let within = |error| format!("value {}: {error}", place + 1);
        match value.get().starts_with('[') {
            true => events.extend(Event::parse_batch(value.get().as_bytes()).map_err(within)?),
            false => events.push(Event::parse(value.get().as_bytes()).map_err(within)?),
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u32) -> String {
        format!(
            "{{\n \"specversion\": \"1.0\", \"id\": \"{id}\",\n \"source\": \"s\", \"type\": \"t\" }}"
        )
    }

    #[test]
    fn c20_samples_are_one_event_lines_of_them_or_a_list() {
        let ids = |text: &str| {
            let events = parse(text).unwrap();
            events.iter().map(|event| event.id().parse().unwrap()).collect::<Vec<u32>>()
        };
        let line = |id| event(id).replace('\n', "");
        assert_eq!(ids(&event(1)), [1]);
        assert_eq!(ids(&format!("\u{feff}{}\r\n\n{}\n", line(1), line(2))), [1, 2]);
        assert_eq!(ids(&format!("[{}, {}]\n{}", event(1), event(2), event(3))), [1, 2, 3]);
        assert_eq!(ids(" \n"), Vec::<u32>::new());
    }

    #[test]
    fn c20_a_sample_that_is_no_event_is_told_with_its_place() {
        let why = |text: &str| parse(text).unwrap_err();
        assert!(why("{").contains("line 1"), "{}", why("{"));
        let second = format!("{}\n{{\"id\":\"2\"}}", event(1));
        assert_eq!(why(&second), "value 2: required attribute `specversion` is missing");
        assert!(why("[{}]").starts_with("value 1: event 1 of the batch"), "{}", why("[{}]"));
    }
}
