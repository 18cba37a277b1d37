//! Sample events: one or several JSON values, each an event or a list of events, with any white space between them. So a pretty
//! event, a file of one event a line and a batch are all read.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use greenroom_bus::event::Event;
use serde_json::value::RawValue;

/// Reads the events of a file; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Vec<Event>, String> {
    let shown =
        if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
    let text = text_of(path).map_err(|error| format!("cannot read the sample {shown}: {error}"))?;
    let events = parse(&text).map_err(|why| {
        format!(
            "the sample {shown} cannot be read: {why}; it holds CloudEvents as JSON, one or several"
        )
    })?;
    match events.is_empty() {
        true => Err(format!("the sample {shown} holds no event")),
        false => Ok(events),
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
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
