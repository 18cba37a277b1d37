//! From the queues of librdkafka to what is ready.

use std::{
    mem,
    time::{Duration, Instant},
};

use greenroom_bus::{source::Partition, watermark::Received};
use rdkafka::{Message, message::BorrowedMessage};

use super::{
    super::shared::{Part, Tracker},
    AssignedPartition, Poller, TOLD_EVERY,
};
use crate::place::Place;

/// Records taken of one partition in a turn.
pub(super) const BATCH: usize = 256;
/// Between looks at whether a set that was full fits again.
const FULL_LOOK: Duration = Duration::from_millis(20);

impl Poller {
    /// Takes what there is room for. True where there was anything.
    pub(super) fn fill(&mut self) -> bool {
        let mut any = false;
        let mut reading = mem::take(&mut self.reading);
        for (number, reading) in &mut reading {
            let has_room = {
                let state = self.shared.state.lock();
                state.parts.get(number).is_some_and(Part::has_room)
            };
            if has_room && self.has_set_room(reading) {
                any |= self.fill_one(*number, reading);
            }
        }
        self.reading = reading;
        any
    }

    fn fill_one(&mut self, number: Partition, reading: &AssignedPartition) -> bool {
        let Some(queue) = &reading.queue else { return false };
        let mut messages = Vec::new();
        while messages.len() < BATCH {
            match queue.poll(Duration::ZERO) {
                Some(Ok(message)) => messages.push(message),
                Some(Err(error)) => self.is_told(error),
                None => break,
            }
        }
        self.take(number, &reading.tracker, &messages);
        !messages.is_empty()
    }

    /// One that came before its partition had a queue.
    pub(super) fn take_stray(&mut self, message: &BorrowedMessage<'_>) {
        let place = Place::new(message.topic(), message.partition());
        let found = self.reading.iter().find(|(_, reading)| reading.place == place);
        if let Some((number, reading)) = found {
            self.take(*number, &reading.tracker, std::slice::from_ref(message));
        }
    }

    /// Decodes those that are not done, and makes them ready.
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
        let taken: Vec<_> = new.map(|(message, _)| self.options.format.taken(message)).collect();
        let bytes: usize = taken.iter().map(Part::bytes).sum();
        if let Some(part) = self.shared.state.lock().parts.get_mut(&number) {
            part.ready.extend(taken);
            part.ready_bytes += bytes;
        }
        self.shared.changed.notify_one();
    }

    /// Whether what is done will fit in a commit, once the next are done in whatever order (F01).
    fn has_set_room(&self, reading: &mut AssignedPartition) -> bool {
        let (span, snapshot) = {
            let watermark = reading.tracker.watermark.lock();
            let span = watermark.next() - watermark.lowest();
            if span < self.limits.sure() {
                reading.full = None;
                return true;
            }
            let looked = reading.full.is_some_and(|at| at.elapsed() < FULL_LOOK);
            (span, if looked { None } else { watermark.snapshot() })
        };
        let Some(snapshot) = snapshot else { return false };
        let (name, place) = (&self.shared.name, &reading.place);
        if self.limits.has_room(snapshot.positions(), BATCH as u64) {
            reading.full = None;
            return true;
        }
        // It may become full, and have room again, many times a second.
        if reading.told_full.is_none_or(|at| at.elapsed() > TOLD_EVERY) {
            reading.told_full = Some(Instant::now());
            let lowest = snapshot.positions().lowest();
            tracing::warn!(
                "{name}: partition {place} is read no further until offset {lowest} is settled: what \
                 is done of the {span} offsets from there on would no longer fit in a commit"
            );
        }
        reading.full = Some(Instant::now());
        false
    }
}
