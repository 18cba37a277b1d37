//! Who is in a pool: the slots in the order in which their workers joined.

use std::{collections::BTreeSet, ops::RangeInclusive};

/// In the place of one that is nowhere.
const NONE: usize = usize::MAX;

/// The members of a pool. One comes or goes in constant time, on average, because thousands may go one by one: who goes leaves a
/// gap in the row, and the row is closed up when half of it is gaps.
#[derive(Debug)]
pub(crate) struct Roster {
    /// Slots with a worker, or disabled, in the order of joining; [`NONE`] where one has left.
    row: Vec<usize>,
    /// Of each slot ever made: where in the row it is; [`NONE`] when its worker is no member. Empty until the first one leaves: each
    /// slot has its own place until then, and most actors stand alone.
    places: Vec<usize>,
    /// How many in the row are members.
    members: usize,
    /// Slots whose workers have gone: the lowest is taken first.
    vacant: BTreeSet<usize>,
    /// How many members there may be.
    bounds: RangeInclusive<usize>,
    /// Places in the row that were moved.
    #[cfg(test)]
    moved: usize,
}

impl Roster {
    pub(crate) fn new(workers: usize, bounds: RangeInclusive<usize>) -> Self {
        Self {
            row: (0..workers).collect(),
            places: Vec::new(),
            members: workers,
            vacant: BTreeSet::new(),
            bounds,
            #[cfg(test)]
            moved: 0,
        }
    }

    /// In the order of joining.
    pub(crate) fn members(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.row.iter().copied().filter(|slot| *slot != NONE)
    }

    pub(crate) fn has(&self, slot: usize) -> bool {
        match self.places.is_empty() {
            true => slot < self.row.len(),
            false => self.places.get(slot).is_some_and(|place| *place != NONE),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.members
    }

    pub(crate) fn bounds(&self) -> RangeInclusive<usize> {
        self.bounds.clone()
    }

    /// Slots ever made.
    pub(crate) fn made(&self) -> usize {
        match self.places.is_empty() {
            true => self.row.len(),
            false => self.places.len(),
        }
    }

    /// A new member takes the lowest vacant slot, and stands behind the others.
    pub(crate) fn join(&mut self) -> usize {
        let slot = self.vacant.pop_first().unwrap_or_else(|| self.made());
        if slot < self.places.len() {
            self.places[slot] = self.row.len();
        } else if !self.places.is_empty() {
            self.places.push(self.row.len());
        }
        self.row.push(slot);
        self.members += 1;
        slot
    }

    /// A member is on its way out. False when it is none.
    pub(crate) fn leave(&mut self, slot: usize) -> bool {
        if !self.has(slot) {
            return false;
        }
        if self.places.is_empty() {
            self.places = (0..self.row.len()).collect();
        }
        let place = std::mem::replace(&mut self.places[slot], NONE);
        self.row[place] = NONE;
        self.members -= 1;
        if self.row.len() > 2 * self.members {
            self.close_up();
        }
        true
    }

    fn close_up(&mut self) {
        self.row.retain(|slot| *slot != NONE);
        for (place, slot) in self.row.iter().enumerate() {
            self.places[*slot] = place;
        }
        #[cfg(test)]
        {
            self.moved += self.row.len();
        }
    }

    /// The worker has gone, and its slot can be taken.
    pub(crate) fn vacate(&mut self, slot: usize) {
        self.vacant.insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;

    #[test]
    fn p13_the_lowest_vacant_slot_is_taken_and_new_members_stand_behind_the_old_ones() {
        let mut roster = Roster::new(4, 0..=8);
        assert!(roster.leave(1) && roster.leave(2) && !roster.leave(2));
        assert_eq!(roster.join(), 4, "their workers have not gone yet");
        roster.vacate(2);
        roster.vacate(1);
        assert_eq!((roster.join(), roster.join(), roster.join()), (1, 2, 5));
        assert!(roster.members().eq([0, 3, 4, 1, 2, 5]));
        assert!(roster.has(5) && !roster.has(6));
        assert_eq!(roster.made(), 6);
    }

    #[test]
    fn thousands_that_leave_one_by_one_move_each_other_a_few_times_at_most() {
        const MANY: usize = 65_536;
        let mut roster = Roster::new(MANY, 0..=MANY);
        for slot in (0..MANY).rev().filter(|slot| slot % 3 > 0).chain((0..MANY).step_by(3)) {
            assert!(roster.leave(slot) && !roster.leave(slot));
            roster.vacate(slot);
        }
        assert_eq!((roster.len(), roster.members().count()), (0, 0));
        assert!(roster.moved <= MANY, "{} were moved", roster.moved);
        assert!((0..MANY).all(|slot| roster.join() == slot));
        assert_eq!((roster.made(), roster.len()), (MANY, MANY));
        // One comes and one goes, for ever.
        for _ in 0..10 * MANY {
            roster.vacate(7);
            assert!(roster.leave(7));
            assert_eq!(roster.join(), 7);
        }
        assert!(roster.members().eq((0..MANY).filter(|slot| *slot != 7).chain([7])));
        assert!(roster.moved <= 12 * MANY, "{} were moved", roster.moved);
    }
}
