//! The records: CloudEvents in binary mode, of 1 KiB of bytes that nobody parses.

use std::time::Duration;

use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};

use crate::{
    Failure,
    broker::{Broker, PARTITIONS},
    random::Random,
};

/// Bytes of a value.
pub const VALUE: usize = 1_024;

/// Publishes in the order in which it is told, and keeps it.
pub struct Publisher {
    producer: BaseProducer,
    topic: String,
    value: Vec<u8>,
}

impl Publisher {
    pub fn new(broker: &Broker, topic: &str) -> Result<Self, Failure> {
        let producer = broker
            .config()
            .set("enable.idempotence", "true")
            .set("linger.ms", "20")
            .set("queue.buffering.max.messages", "1000000")
            .create()?;
        let mut random = Random::new(3);
        let value = (0..VALUE).map(|_| random.next() as u8).collect();
        Ok(Self { producer, topic: topic.to_owned(), value })
    }

    /// An event by its number, of a key, in the partition that this key has.
    pub fn publish(&self, number: u64, key: usize) -> Result<(), Failure> {
        let (id, name) = (number.to_string(), name(key));
        let attributes = [
            ("ce_specversion", "1.0"),
            ("ce_id", &id),
            ("ce_source", "/bench"),
            ("ce_type", "made"),
        ];
        let headers = OwnedHeaders::new_with_capacity(attributes.len());
        let headers = attributes.into_iter().fold(headers, |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value) })
        });
        let mut record = BaseRecord::<str, [u8]>::to(&self.topic)
            .partition(partition(key))
            .key(&name)
            .payload(&self.value)
            .headers(headers);
        while let Err((error, again)) = self.producer.send(record) {
            if error.rdkafka_error_code() != Some(rdkafka::error::RDKafkaErrorCode::QueueFull) {
                return Err(error.into());
            }
            record = again;
            self.producer.poll(Duration::from_millis(10));
        }
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Waits until all of it is stored.
    pub fn flush(&self) -> Result<(), Failure> {
        Ok(self.producer.flush(Duration::from_secs(120))?)
    }
}

/// What a record of this key has as its key.
pub fn name(key: usize) -> String {
    format!("key-{key}")
}

/// Spread, as a hash would spread them.
pub fn partition(key: usize) -> i32 {
    (key % PARTITIONS as usize) as i32
}
