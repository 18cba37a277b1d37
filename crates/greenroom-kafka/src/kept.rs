//! Parts of a record that travel with its event to a Kafka output, besides key and value.
//!
//! It travels with the event inside this process, as a [local
//! value](greenroom_bus::event::Event::with_local), and only if an input is configured to keep it:
//! events of other inputs pay nothing.

use greenroom_bus::source::Taken;
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

use crate::decode::is_of_event;

/// The parts of records that an input keeps, for Kafka outputs that receive the same events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// Their headers. Default: none.
    pub headers: KeptHeaders,
    /// Their timestamps. Default: false, an output has records of now.
    pub timestamp: bool,
}

/// Which headers of a record are kept. Those that an event is made of (`ce_` and `content-type`)
/// are not among them: an output writes its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeptHeaders {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

/// The kept parts of a record.
#[derive(Debug, Clone)]
pub(crate) struct KeptRecord {
    pub(crate) headers: OwnedHeaders,
    /// Milliseconds since 1970.
    pub(crate) timestamp: Option<i64>,
}

impl Kept {
    /// The item, with the kept parts of its record.
    pub(crate) fn with_kept(&self, taken: Taken, record: &BorrowedMessage<'_>) -> Taken {
        if *self == Self::default() {
            return taken;
        }
        let Taken { position, event } = taken;
        // The headers of a valid event are readable.
        Taken { position, event: event.map(|event| event.with_local(self.of_record(record))) }
    }

    fn of_record(&self, record: &BorrowedMessage<'_>) -> KeptRecord {
        let timestamp = record.timestamp().to_millis().filter(|_| self.timestamp);
        let of_record = record.headers().into_iter().flat_map(Headers::iter);
        let kept = of_record.filter(|header| self.headers.has(header.key));
        KeptRecord { headers: kept.fold(OwnedHeaders::new(), OwnedHeaders::insert), timestamp }
    }
}

impl KeptHeaders {
    fn has(&self, name: &str) -> bool {
        let is_wanted = match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        };
        is_wanted && !is_of_event(name)
    }
}
