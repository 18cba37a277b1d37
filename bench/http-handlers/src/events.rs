//! What is posted.

use greenroom_bus::event::Event;

use crate::Failure;

/// Of the data of an event.
const PAYLOAD: usize = 1_024;

/// Different subjects.
const SUBJECTS: u64 = 1_000;

/// The event of this number.
pub fn event(number: u64) -> Result<Event, Failure> {
    let event = Event::builder(number.to_string(), "/bench/http", "bench.raw")
        .subject(format!("customer-{}", number % SUBJECTS))
        .datacontenttype("application/octet-stream")
        .data_binary(vec![number as u8; PAYLOAD])
        .build();
    Ok(event?)
}
