//! Parts of a record that travel with its event to a Kafka output, besides key and value.
//!
//! It travels with the event inside this process, as a [local
//! value](greenroom_bus::event::Event::with_local), and only if an input is configured to keep it:
//! events of other inputs pay nothing.

use greenroom_bus::source::Taken;
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

use crate::{decode::is_of_event, options::KafkaInput};

/// The kept parts of a record.
#[derive(Debug, Clone)]
pub(crate) struct KeptRecord {
    pub(crate) headers: OwnedHeaders,
    /// Milliseconds since 1970.
    pub(crate) timestamp: Option<i64>,
}

/// The item, with the parts of its record that this input keeps.
pub(crate) fn keep(input: &KafkaInput, taken: Taken, record: &BorrowedMessage<'_>) -> Taken {
    if input.keep_headers.is_none() && !input.keep_timestamp {
        return taken;
    }
    let Taken { position, event } = taken;
    // The headers of a valid event are readable.
    Taken { position, event: event.map(|event| event.with_local(kept(input, record))) }
}

fn kept(input: &KafkaInput, record: &BorrowedMessage<'_>) -> KeptRecord {
    let timestamp = record.timestamp().to_millis().filter(|_| input.keep_timestamp);
    let is_named = |name: &str| match input.keep_headers.as_deref() {
        None => false,
        Some([all]) if all == "all" => true,
        Some(names) => names.iter().any(|wanted| wanted == name),
    };
    let of_record = record.headers().into_iter().flat_map(Headers::iter);
    let kept = of_record.filter(|header| is_named(header.key) && !is_of_event(header.key));
    KeptRecord { headers: kept.fold(OwnedHeaders::new(), OwnedHeaders::insert), timestamp }
}
