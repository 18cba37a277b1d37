//! Records on their way back.

use std::{collections::HashMap, mem, time::Duration};

use greenroom_bus::dead_letter::redrive::RedriveError;
use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Message,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use crate::{
    again,
    client::{self, code},
    connection::Access,
    marks::{self, Read},
    options::KafkaInput,
    place::Place,
    unusable::Unusable,
};

/// At most this many records, and this many bytes of them, are under way at once.
const RECORDS: usize = 1_000;
const BYTES: usize = 32 << 20;

/// Between looks at records under way.
const POLL: Duration = Duration::from_millis(20);

/// How long brokers may take to store a record.
const WITHIN: &str = "30000";

/// The result for a record: that of the letter at this offset.
pub(super) struct Told {
    pub(super) partition: i32,
    pub(super) offset: u64,
    /// The topic that it went to.
    pub(super) to: String,
    pub(super) how: Result<(), RDKafkaErrorCode>,
}

/// A producer for each cluster that letters go back to.
pub(super) struct Sending<'a> {
    /// By the name of the input; `None` for the letters' own brokers.
    producers: HashMap<Option<&'a str>, BaseProducer<RedriveContext>>,
    records: usize,
    bytes: usize,
}

impl<'a> Sending<'a> {
    /// It connects to brokers on demand.
    ///
    /// # Errors
    /// A property cannot be used.
    pub(super) fn new(
        letters: &Access,
        inputs: &'a [(String, KafkaInput)],
    ) -> Result<Self, Unusable> {
        let mut producers = HashMap::new();
        producers.insert(None, producer(letters)?);
        for (name, input) in inputs {
            let access = input.connection().access(&[])?;
            producers.insert(Some(name.as_str()), producer(&access)?);
        }
        Ok(Self { producers, records: 0, bytes: 0 })
    }

    /// Sends the record of a letter.
    ///
    /// # Errors
    /// The brokers take nothing more; or, inside, why this one cannot be sent.
    pub(super) fn send(
        &mut self,
        record: &BorrowedMessage<'_>,
        read: Read,
        place: &Place,
    ) -> Result<Result<(), String>, RedriveError> {
        // The guard does not record by which input a moved record came.
        let input = read.marks.get(marks::INPUT).filter(|_| self.producers.len() > 1);
        let Some(producer) = self.producers.get(&input) else {
            let name = input.unwrap_or_default();
            return Ok(Err(format!("it came by the input `{name}`, which is not known here")));
        };
        let headers = match read.marks.adds_origin(read.original) {
            Ok(headers) => headers,
            Err(why) => return Ok(Err(why)),
        };
        let bytes = record.payload().map_or(0, <[u8]>::len);
        let sent = SentLetter {
            partition: record.partition(),
            offset: record.offset().unsigned_abs(),
            bytes,
        };
        let back = BaseRecord::<[u8], [u8], _> {
            partition: Some(place.partition),
            key: record.key(),
            payload: record.payload(),
            headers: Some(headers),
            ..BaseRecord::with_opaque_to(&place.topic, Box::new(sent))
        };
        match producer.send(back) {
            Ok(()) => {
                self.records += 1;
                self.bytes += bytes;
                Ok(Ok(()))
            }
            Err((error, _)) => Ok(Err(format!("topic {} does not take it: {error}", place.topic))),
        }
    }

    pub(super) fn under_way(&self) -> usize {
        self.records
    }

    pub(super) fn is_full(&self) -> bool {
        self.records >= RECORDS || self.bytes >= BYTES
    }

    /// The present results; if too much is under way, those of a little later.
    pub(super) fn hear(&mut self) -> Vec<Told> {
        match self.is_full() {
            true => self.wait(),
            false => self.heard(Duration::ZERO),
        }
    }

    pub(super) fn wait(&mut self) -> Vec<Told> {
        self.heard(POLL / self.producers.len().max(1) as u32)
    }

    fn heard(&mut self, each: Duration) -> Vec<Told> {
        let mut all = Vec::new();
        for producer in self.producers.values() {
            producer.poll(each);
            all.append(&mut mem::take(&mut *producer.context().told.lock()));
        }
        self.records -= all.len();
        self.bytes -= all.iter().map(|(bytes, _)| bytes).sum::<usize>();
        all.into_iter().map(|(_, told)| told).collect()
    }

    /// With the clients' messages in between, which often contain the reason.
    pub(super) fn explained(&self, what: &str) -> String {
        let said =
            self.producers.values().find_map(|producer| producer.context().said.lock().take());
        match said {
            Some(reason) => format!("{what}: {reason}"),
            None => what.to_owned(),
        }
    }
}

fn producer(access: &Access) -> Result<BaseProducer<RedriveContext>, Unusable> {
    let ours = [
        ("enable.idempotence", "true".to_owned()),
        ("message.timeout.ms", WITHIN.to_owned()),
        ("message.max.bytes", "1000000000".to_owned()),
    ];
    let kept = again::writing(access, &ours);
    client::config(&kept, &ours, &[], &[])?
        .create_with_context(RedriveContext::default())
        .map_err(|error| client::creation_error(error, &kept.properties))
}

/// The letter of a record that is under way.
struct SentLetter {
    partition: i32,
    offset: u64,
    bytes: usize,
}

#[derive(Default)]
struct RedriveContext {
    told: Mutex<Vec<(usize, Told)>>,
    /// The client's last message.
    said: Mutex<Option<String>>,
}

impl ClientContext for RedriveContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log("redrive", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = code(&error);
        // That all brokers are lost follows from that none has let us in.
        if code != RDKafkaErrorCode::AllBrokersDown {
            *self.said.lock() = Some(format!("{reason}{}", client::advice_at_once(code)));
        }
    }
}

impl ProducerContext for RedriveContext {
    type DeliveryOpaque = Box<SentLetter>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<SentLetter>) {
        let (to, how) = match result {
            Ok(record) => (record.topic().to_owned(), Ok(())),
            Err((error, record)) => (record.topic().to_owned(), Err(code(error))),
        };
        let SentLetter { partition, offset, bytes } = *sent;
        self.told.lock().push((bytes, Told { partition, offset, to, how }));
    }
}
