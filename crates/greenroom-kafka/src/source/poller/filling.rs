//! From the queues of librdkafka to the ready records.

use std::{
    mem,
    time::{Duration, Instant},
};

use greenroom_bus::{source::Partition, watermark::Received};
use rdkafka::{Message, message::BorrowedMessage};

use super::{
    super::{
        setup::SourceSetup,
        shared::{Part, Tracker},
    },
    AssignedPartition, Poller,
    contact::TOLD_EVERY,
};
use crate::{decode, kept, place::Place};

/// Records taken of one partition in a turn.
pub(super) const BATCH: usize = 256;
/// Between looks at whether a set that was full fits again.
const FULL_LOOK: Duration = Duration::from_millis(20);

impl Poller {
    /// Takes records as far as there is room. True if there were any.
    pub(super) fn fill(&mut self) -> bool {
        let mut any = false;
        let mut reading = mem::take(&mut self.reading);
        for (number, reading) in &mut reading {
            if reading.anew.is_some() {
                any |= reading.queue.is_some() && self.begin_anew(*number, reading);
                continue;
            }
            let has_room = {
                let state = self.shared.state.lock();
                state.parts.get(number).is_some_and(Part::has_room)
            };
            if has_room && let Some(end) = self.end_of_room(reading) {
                any |= self.fill_one(*number, reading, end);
            }
        }
        self.reading = reading;
        any
    }

    /// Takes records below this offset, and perhaps one beyond it if there is none before.
    fn fill_one(&mut self, number: Partition, reading: &mut AssignedPartition, end: u64) -> bool {
        let Some(queue) = reading.queue.take() else { return false };
        let (mut messages, mut next) = (Vec::new(), 0);
        while messages.len() < BATCH && next < end {
            match queue.poll(Duration::ZERO) {
                Some(Ok(message)) => {
                    next = message.offset().unsigned_abs() + 1;
                    messages.push(message);
                }
                Some(Err(error)) => self.is_told(error),
                None => break,
            }
        }
        let first = messages.first().map(|first| first.offset().unsigned_abs());
        if first.is_some_and(|first| !self.was_sent_past(reading, first)) {
            self.read(number, reading, &messages);
        }
        drop(messages);
        reading.queue = Some(queue);
        first.is_some()
    }

    fn read(
        &self,
        number: Partition,
        reading: &mut AssignedPartition,
        messages: &[BorrowedMessage<'_>],
    ) {
        let was_back = reading.read.is_back;
        let anew = reading.read.read(messages);
        self.take(number, &reading.tracker, &messages[..anew.unwrap_or(messages.len())]);
        match anew {
            Some(first) => self.leaves_log(number, reading, &messages[first]),
            None if reading.read.is_back && !was_back => self.tells_step_back(reading),
            None => {}
        }
    }

    /// A record that came before its partition had a queue.
    pub(super) fn take_stray(&mut self, message: &BorrowedMessage<'_>) {
        let place = Place::new(message.topic(), message.partition());
        let found = self.reading.iter().find(|(_, reading)| reading.place == place);
        if let Some((number, reading)) = found {
            self.take(*number, &reading.tracker, std::slice::from_ref(message));
        }
    }

    /// Decodes the unsettled ones, and makes them ready.
    fn take(&self, number: Partition, tracker: &Tracker, messages: &[BorrowedMessage<'_>]) {
        if messages.is_empty() {
            return;
        }
        let is_new: Vec<bool> = {
            let mut watermark = tracker.watermark.lock();
            let receive = |message: &BorrowedMessage<'_>| {
                watermark.receive(message.offset().unsigned_abs()) == Received::New
            };
            messages.iter().map(receive).collect()
        };
        let new = messages.iter().zip(is_new).filter(|(_, is_new)| *is_new);
        let SourceSetup { input, records, .. } = &self.setup;
        let take = |(message, _): (&BorrowedMessage<'_>, bool)| {
            kept::keep(input, decode::taken(records.as_ref(), message), message)
        };
        let taken: Vec<_> = new.map(take).collect();
        if let Some(part) = self.shared.state.lock().parts.get_mut(&number) {
            part.is_ready(taken);
        }
        self.shared.changed.notify_one();
    }

    /// The offset below which it may be read, so that the settled offsets will fit in a commit in
    /// whatever order they are settled (F01). `None` if it may not be read.
    fn end_of_room(&self, reading: &mut AssignedPartition) -> Option<u64> {
        let (span, snapshot) = {
            let watermark = reading.tracker.watermark.lock();
            let span = watermark.next() - watermark.lowest();
            if span < self.limits.sure() {
                reading.full = None;
                return Some(u64::MAX);
            }
            // The offsets that it remembers as open are in the set already. Until they have come,
            // they cannot be settled, and there would never be room.
            if let Some(end) = watermark.expected_end() {
                return Some(end);
            }
            let looked = reading.full.is_some_and(|at| at.elapsed() < FULL_LOOK);
            (span, if looked { None } else { watermark.snapshot() })
        };
        let snapshot = snapshot?;
        let (name, place) = (&self.shared.name, &reading.place);
        if self.limits.has_room(snapshot.positions(), BATCH as u64) {
            reading.full = None;
            return Some(u64::MAX);
        }
        // It may become full, and have room again, many times a second.
        if reading.told_full.is_none_or(|at| at.elapsed() > TOLD_EVERY) {
            reading.told_full = Some(Instant::now());
            let lowest = snapshot.positions().lowest();
            tracing::warn!(
                "{name}: partition {place} waits: what is done of the {span} offsets from {lowest} on \
                 would no longer fit in a commit; it is read on once offset {lowest} is settled, and \
                 as far as others behind it are"
            );
        }
        reading.full = Some(Instant::now());
        None
    }
}
