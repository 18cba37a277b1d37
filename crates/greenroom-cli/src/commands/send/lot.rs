//! Events with their places in the file, for a request.

use greenroom_bus::event::Event;

/// An event and its position in the file.
pub(super) struct Read {
    pub(super) event: Event,
    pub(super) position: u64,
}

/// Events that are posted as one request.
#[derive(Default)]
pub(super) struct Lot {
    pub(super) events: Vec<Event>,
    pub(super) positions: Vec<u64>,
}

impl Lot {
    /// Takes the events of the next request from the front of `waiting`: at least one.
    pub(super) fn take(waiting: &mut Vec<Read>, most: usize, bytes: u64) -> Self {
        let mut size = 0;
        let fits = |read: &&Read| {
            size += read.event.approximate_bytes() as u64;
            size <= bytes
        };
        let count = waiting.iter().take(most).take_while(fits).count().max(1).min(waiting.len());
        let taken = waiting.drain(..count);
        let (events, positions) = taken.map(|read| (read.event, read.position)).unzip();
        Self { events, positions }
    }

    /// The parts before and after this place.
    pub(super) fn around(mut self, place: usize) -> (Self, Self) {
        let after = Self {
            events: self.events.split_off(place + 1),
            positions: self.positions.split_off(place + 1),
        };
        self.events.truncate(place);
        self.positions.truncate(place);
        (self, after)
    }

    /// Its first half, and the rest.
    pub(super) fn halves(mut self) -> (Self, Self) {
        let middle = self.events.len() / 2;
        let rest = Self {
            events: self.events.split_off(middle),
            positions: self.positions.split_off(middle),
        };
        (self, rest)
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(count: u64) -> Vec<Read> {
        let event = Event::builder("1", "s", "t").build().unwrap();
        (0..count).map(|position| Read { event: event.clone(), position }).collect()
    }

    #[test]
    fn c07_a_request_has_so_many_events_and_bytes_and_at_least_one() {
        let mut waiting = reads(5);
        let size = waiting[0].event.approximate_bytes() as u64;
        assert_eq!(Lot::take(&mut waiting, 2, u64::MAX).positions, [0, 1]);
        assert_eq!(Lot::take(&mut waiting, 9, 2 * size + 1).positions, [2, 3]);
        assert_eq!(Lot::take(&mut waiting, 9, 1).positions, [4]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn c07_what_is_around_a_bad_event_keeps_its_order() {
        let mut waiting = reads(5);
        let lot = Lot::take(&mut waiting, 5, u64::MAX);
        let (before, after) = lot.around(2);
        assert_eq!((before.positions, after.positions), (vec![0, 1], vec![3, 4]));
    }
}
