//! Letters of a topic back to where their records were (D06).
//!
//! ```text
//! letters ──▶ chosen? ──▶ record, key and headers as they were ──▶ its topic, its partition ──▶ stored ──▶ done
//!                └── no, or no record: stays open                                                           │
//!            what is done is committed for a group of its own, once a second ◀──────────────────────────────┘
//! ```
//!
//! A commit of that group [remembers](crate::commit_set) which letters are done beyond the lowest
//! open one. So a skipped letter is found by the next redrive, and a sent one is not sent again. If
//! the process is killed, letters sent since the last commit are sent again.

mod sending;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use greenroom_bus::{
    dead_letter::redrive::{LetterChoice, RedriveError, Redriven},
    watermark::{Epoch, Received, Watermark},
};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
};

use self::sending::{Sending, Told};
use super::{
    SourceSetup,
    context::SourceContext,
    limits::Limits,
    looking,
    offsets::{self, Beginning, HowToBegin},
    storing::{self, StoredOffset},
};
use crate::{
    Unusable, client,
    marks::{self, Form, Marks, Read},
    options::{KafkaInput, KafkaLetters},
    place::Place,
};

/// The group that remembers which letters are done, unless another is chosen.
const GROUP: &str = "greenroom-redrive";
/// How long the brokers may say nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between looks.
const POLL: Duration = Duration::from_millis(50);
/// The interval of commits, and of progress reports.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// This many letters may come between two checks whether the settled ones still fit in a commit.
const LOOK_EVERY: u64 = 1_000;

/// Sends the records of letters back to their topics, each to its original partition, with its key
/// and its original headers, and one that names its original place. `tells` receives the progress
/// once a second. It covers the letters that exist when it begins, and none that come later.
///
/// `inputs` are those that letters have come by, by name: their records go back to the brokers that
/// these read from, and a letter of another input stays. Without any, all records go to the brokers
/// of the letters.
///
/// A record that is sent is the newest in its topic, and so in the order of its key. One process at
/// a time may do this for one group.
///
/// It blocks: on a runtime, call it where blocking is allowed.
///
/// # Errors
/// An option or a property cannot be used, the topic does not exist, or the brokers do not answer.
/// Finished letters stay finished.
pub fn redrive(
    letters: &KafkaLetters,
    inputs: &[(String, KafkaInput)],
    choice: &LetterChoice,
    mut tells: impl FnMut(&Redriven),
) -> Result<Redriven, RedriveError> {
    if letters.topic.starts_with('^') {
        return Err(RedriveError("letters lie in one topic, and not in a pattern".to_owned()));
    }
    let mut redrive = Redrive::begin(letters, inputs, choice)?;
    let run = redrive.run(&mut tells);
    // However it ended, stored letters are done.
    let sent = redrive.sent();
    let committed = redrive.commit();
    tells(&redrive.redriven);
    run.and(sent).and(committed)?;
    Ok(redrive.redriven)
}

/// The letters, as a source of the group that remembers which are done.
fn letters_setup(letters: &KafkaLetters, choice: &LetterChoice) -> Result<SourceSetup, Unusable> {
    let group = choice.group.as_deref().unwrap_or(GROUP);
    let input = KafkaInput {
        brokers: letters.brokers.clone(),
        tls: letters.tls.clone(),
        sasl: letters.sasl.clone(),
        properties: letters.properties.clone(),
        ..KafkaInput::new("", group, [&letters.topic])
    };
    SourceSetup::new(input, None)
}

struct Redrive<'a> {
    choice: &'a LetterChoice,
    consumer: BaseConsumer<SourceContext>,
    parts: BTreeMap<i32, LetterPartition>,
    sending: Sending<'a>,
    limits: Limits,
    redriven: Redriven,
    /// Letters that were taken to be sent.
    taken: u64,
    /// And those of them that their topic did not take.
    failed: u64,
}

/// A partition of the letters.
struct LetterPartition {
    place: Place,
    watermark: Watermark,
    epoch: Epoch,
    /// Where letters ended when this began.
    end: u64,
    is_read: bool,
    /// An earlier redrive has committed something.
    is_remembered: bool,
    /// By this redrive. The first commit may repeat the existing state: brokers forget an offset
    /// that was not committed for `offsets.retention.minutes`.
    committed: Option<StoredOffset>,
    received: u64,
}

impl<'a> Redrive<'a> {
    fn begin(
        letters: &KafkaLetters,
        inputs: &'a [(String, KafkaInput)],
        choice: &'a LetterChoice,
    ) -> Result<Self, RedriveError> {
        let unusable = |error: Unusable| RedriveError(error.why);
        let source = letters_setup(letters, choice).map_err(unusable)?;
        let consumer = looking::consumer(&source).map_err(unusable)?;
        let sending = Sending::new(&source.access, inputs).map_err(unusable)?;
        let places = looking::places(&consumer, &source.input.topics)?;
        let explained = |error: &KafkaError| {
            RedriveError(looking::explained(&consumer, "the letters cannot be read", error))
        };
        let begun = offsets::begin(&consumer, &places, HowToBegin::of_input(&source.input));
        let (limits, mut parts) = (Limits::new(source.input.metadata_limit, true), BTreeMap::new());
        let mut list = TopicPartitionList::new();
        for Beginning { place, positions, from, is_committed, .. } in
            begun.map_err(|error| explained(&error))?
        {
            let (_, end) = consumer
                .fetch_watermarks(&place.topic, place.partition, PATIENCE)
                .map_err(|error| explained(&error))?;
            let end = end.unsigned_abs();
            if from < end {
                let from = Offset::Offset(i64::try_from(from).unwrap_or(i64::MAX));
                list.add_partition_offset(&place.topic, place.partition, from)
                    .map_err(|error| explained(&error))?;
            }
            let mut watermark = Watermark::default();
            let epoch = watermark.assign(&positions);
            let part = LetterPartition {
                epoch,
                end,
                is_read: from >= end,
                is_remembered: is_committed,
                committed: None,
                received: 0,
                watermark,
                place,
            };
            parts.insert(part.place.partition, part);
        }
        consumer.assign(&list).map_err(|error| explained(&error))?;
        let redriven = Redriven::default();
        Ok(Self { choice, consumer, parts, sending, limits, redriven, taken: 0, failed: 0 })
    }

    fn run(&mut self, tells: &mut impl FnMut(&Redriven)) -> Result<(), RedriveError> {
        let (mut heard, mut committed) = (Instant::now(), Instant::now());
        while self.parts.values().any(|part| !part.is_read) && !self.has_enough() {
            let consumer = &self.consumer;
            match consumer.poll(POLL) {
                None if heard.elapsed() > PATIENCE => {
                    let error = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                    let why = looking::explained(consumer, "letters do not come", &error);
                    return Err(RedriveError(why));
                }
                None => {}
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    heard = Instant::now();
                    if let Some(part) = self.parts.get_mut(&partition) {
                        part.is_read = true;
                    }
                }
                Some(Err(error)) => {
                    let why = looking::explained(consumer, "the letters cannot be read", &error);
                    return Err(RedriveError(why));
                }
                Some(Ok(record)) => {
                    heard = Instant::now();
                    if let Some(part) = self.parts.get_mut(&record.partition()) {
                        let mut taking = Taking {
                            choice: self.choice,
                            sending: &mut self.sending,
                            redriven: &mut self.redriven,
                        };
                        let is_taken = taking.take(part, &record)?;
                        self.taken += u64::from(is_taken);
                        part.look(&self.limits, &mut self.redriven);
                    }
                }
            }
            self.hear()?;
            if committed.elapsed() >= COMMIT_EVERY {
                self.commit()?;
                tells(&self.redriven);
                committed = Instant::now();
            }
        }
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.choice.limit.is_some_and(|limit| self.taken - self.failed >= limit)
    }

    /// Takes the brokers' answers, and waits while too much is under way.
    fn hear(&mut self) -> Result<(), RedriveError> {
        loop {
            let told = self.sending.hear();
            self.settle(told)?;
            if !self.sending.is_full() {
                return Ok(());
            }
        }
    }

    /// Waits for all that is under way.
    fn sent(&mut self) -> Result<(), RedriveError> {
        let mut result = Ok(());
        while self.sending.under_way() > 0 {
            let told = self.sending.wait();
            result = result.and(self.settle(told));
        }
        result
    }

    fn settle(&mut self, told: Vec<Told>) -> Result<(), RedriveError> {
        let mut result = Ok(());
        for Told { partition, offset, to, how } in told {
            let Some(part) = self.parts.get_mut(&partition) else { continue };
            match how {
                Ok(()) => {
                    part.watermark.settle(part.epoch, offset);
                    self.redriven.is_published(&to);
                }
                Err(RDKafkaErrorCode::MessageTimedOut) => {
                    let why = format!("topic {to} does not answer");
                    result = Err(RedriveError(self.sending.explained(&why)));
                }
                Err(code) => {
                    let why = format!("topic {to} does not take it: {code}");
                    let advice = client::advice_at_once(code);
                    self.failed += 1;
                    self.redriven.stays(letter(&part.place, offset), &format!("{why}{advice}"));
                }
            }
        }
        result
    }

    /// For each partition with done letters.
    fn commit(&mut self) -> Result<(), RedriveError> {
        if self.choice.counts_only {
            return Ok(());
        }
        for part in self.parts.values_mut() {
            part.commit(&self.consumer, &mut self.limits)?;
        }
        Ok(())
    }
}

/// The criteria for a letter, and the outcome.
struct Taking<'r, 'a> {
    choice: &'a LetterChoice,
    sending: &'r mut Sending<'a>,
    redriven: &'r mut Redriven,
}

impl Taking<'_, '_> {
    /// True if it is on its way, or would be.
    fn take(
        &mut self,
        part: &mut LetterPartition,
        record: &BorrowedMessage<'_>,
    ) -> Result<bool, RedriveError> {
        let offset = record.offset().unsigned_abs();
        part.is_read |= offset + 1 >= part.end;
        if offset >= part.end || part.watermark.receive(offset) != Received::New {
            return Ok(false);
        }
        part.received += 1;
        let none = || "it is no dead letter of Greenroom".to_owned();
        let read = record.headers().map_or(Ok(None), marks::read);
        let read = match read.and_then(|read| read.ok_or_else(none)) {
            Ok(read) => read,
            Err(why) => {
                self.redriven.stays(letter(&part.place, offset), &why);
                return Ok(false);
            }
        };
        let says =
            |what: &str, text: &str| read.marks.get(&format!("greenroom_{what}")) == Some(text);
        if !self.choice.takes(says) {
            self.redriven.passed_over += 1;
            return Ok(false);
        }
        let place = match origin(&read) {
            Ok(place) => place,
            Err(why) => {
                self.redriven.stays(letter(&part.place, offset), &why);
                return Ok(false);
            }
        };
        if self.choice.counts_only {
            self.redriven.is_published(&place.topic);
            return Ok(true);
        }
        match self.sending.send(record, read, &place)? {
            Ok(()) => Ok(true),
            Err(why) => {
                self.redriven.stays(letter(&part.place, offset), &why);
                Ok(false)
            }
        }
    }
}

/// Its name.
fn letter(place: &Place, offset: u64) -> String {
    format!("{place} at offset {offset}")
}

/// Where the record of a letter was.
///
/// # Errors
/// Why there is none.
fn origin(Read { form, marks, .. }: &Read) -> Result<Place, String> {
    if let Some(why) = marks.get("greenroom_unread") {
        return Err(format!("its record was gone when it was written: {why}"));
    }
    let topic = marks.get(marks::TOPIC);
    let partition = marks.get(marks::PARTITION).and_then(|text| text.parse().ok());
    match (form, topic, partition) {
        (Form::Record, Some(topic), Some(partition)) => Ok(Place::new(topic, partition)),
        _ => Err(no_record(marks)),
    }
}

fn no_record(marks: &Marks) -> String {
    match marks.get("greenroom_source").or(marks.get(marks::TOPIC)) {
        Some(source) => format!("it came from {source}, and has no record of a topic"),
        None => "it does not say where it came from".to_owned(),
    }
}

impl LetterPartition {
    /// Stops reading if a commit could not remember all done letters.
    fn look(&mut self, limits: &Limits, redriven: &mut Redriven) {
        if self.is_read || !self.received.is_multiple_of(LOOK_EVERY) {
            return;
        }
        let snapshot = self.watermark.snapshot();
        if snapshot.is_some_and(|of| !limits.has_room(of.positions(), LOOK_EVERY)) {
            self.is_read = true;
            redriven.is_cut_short = true;
        }
    }

    fn commit(
        &mut self,
        consumer: &BaseConsumer<SourceContext>,
        limits: &mut Limits,
    ) -> Result<(), RedriveError> {
        if self.watermark.counts().settled == 0 && !self.is_remembered {
            return Ok(());
        }
        loop {
            let Some(snapshot) = self.watermark.snapshot() else { return Ok(()) };
            let said: StoredOffset =
                (snapshot.positions().lowest(), limits.encode(snapshot.positions()).text);
            if self.committed.as_ref() == Some(&said) {
                return Ok(());
            }
            match storing::store(consumer, &self.place, &said) {
                Ok(()) => {
                    self.committed = Some(said);
                    return Ok(());
                }
                Err(RDKafkaErrorCode::OffsetMetadataTooLarge) => {
                    let next = limits.shrink();
                    tracing::warn!("the broker takes less metadata beside an offset: {next}");
                }
                Err(code) => {
                    return Err(RedriveError(format!(
                        "what was sent of {} cannot be remembered, and is sent again by the next \
                         redrive: {code}{}",
                        self.place,
                        client::advice_at_once(code)
                    )));
                }
            }
        }
    }
}
