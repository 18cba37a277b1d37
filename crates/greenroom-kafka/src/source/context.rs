//! librdkafka's callbacks. No work is done here: calls are recorded for the polling thread, which
//! triggers them.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Statistics, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol},
    error::{KafkaError, RDKafkaErrorCode},
    types::RDKafkaRespErr,
};

use super::figures::Figures;
use crate::{
    client::{Failures, code},
    place::Place,
};

/// A callback of librdkafka.
pub(super) enum Said {
    /// These are assigned, and wait to be read.
    Assigned(Vec<Place>),
    /// These are taken away, once we say so.
    Revoked { places: Vec<Place>, is_lost: bool },
    /// An error of the consumer as a whole.
    Error(RDKafkaErrorCode, String),
    /// The state at one moment, once a second.
    Figures(Figures),
}

pub(super) struct SourceContext {
    name: String,
    said: Mutex<VecDeque<Said>>,
    pub(super) failures: Failures,
    /// The consumer is closing: assignments and revocations are released at once.
    closes: AtomicBool,
}

impl SourceContext {
    pub(super) fn new(name: String) -> Self {
        let (failures, closes) = (Failures::default(), AtomicBool::new(false));
        Self { name, said: Mutex::default(), failures, closes }
    }

    pub(super) fn next(&self) -> Option<Said> {
        self.said.lock().pop_front()
    }

    pub(super) fn close(&self) {
        // Pairs with the load in `rebalance`, which librdkafka calls while the consumer closes.
        self.closes.store(true, Ordering::SeqCst);
    }

    fn say(&self, said: Said) {
        self.said.lock().push_back(said);
    }
}

/// Of a list whose texts are not looked at: they may be anything. In order, so that partitions are
/// numbered alike in every run.
fn places(list: &TopicPartitionList) -> Vec<Place> {
    let elements = list.elements();
    let places = elements.iter().map(|element| Place::new(element.topic(), element.partition()));
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    places
}

impl ClientContext for SourceContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.failures.log(&self.name, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.say(Said::Error(code(&error), reason.to_owned()));
    }

    fn stats(&self, statistics: Statistics) {
        self.say(Said::Figures(Figures::from_statistics(&statistics)));
    }
}

impl ConsumerContext for SourceContext {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        let is_assigned = what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        // Pairs with the store in `close`: a revocation while the consumer closes is released here.
        // Otherwise it would wait for a polling thread that waits for the consumer.
        if self.closes.load(Ordering::SeqCst) {
            let is_cooperative =
                matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative);
            // The consumer is closed either way.
            let _ = match (is_cooperative, is_assigned) {
                (true, false) => consumer.incremental_unassign(list),
                (true, true) => consumer.incremental_assign(list),
                (false, _) => consumer.unassign(),
            };
            return;
        }
        let places = places(list);
        self.say(match is_assigned {
            true => Said::Assigned(places),
            false => Said::Revoked { places, is_lost: consumer.assignment_lost() },
        });
    }
}
