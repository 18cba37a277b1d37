//! What is handed to the workers.

use greenroom_bus::event::Event;

use crate::Failure;

/// Of the data of an event.
const PAYLOAD: usize = 1_024;

/// Different subjects.
const SUBJECTS: u64 = 1_000;

/// The event of this number.
pub fn event(number: u64) -> Result<Event, Failure> {
    let event = Event::builder(number.to_string(), "/bench/exec", "bench.raw")
        .subject(format!("customer-{}", number % SUBJECTS))
        .data_json(&"x".repeat(PAYLOAD))
        .build();
    Ok(event?)
}

/// The line that a worker is given for it.
pub fn line(number: u64) -> Result<Vec<u8>, Failure> {
    let mut line = format!(r#"{{"token":"{number}","attempt":1,"event":"#).into_bytes();
    event(number)?.write_json(&mut line);
    line.extend_from_slice(b"}\n");
    Ok(line)
}
