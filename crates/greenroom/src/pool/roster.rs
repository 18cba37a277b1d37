//! The members of a pool: the slots in the order in which their workers joined.

use std::{collections::BTreeSet, ops::RangeInclusive};

/// In the place of one that is nowhere.
const NONE: usize = usize::MAX;

/// The members of a pool. One joins or leaves in constant time, on average, because thousands
/// may go one by one: a leaver leaves a gap in the row, and the row is closed up when half
/// of it is gaps.
#[derive(Debug)]
pub(crate) struct Roster {
    /// Slots with a worker, or disabled, in the order of joining; [`NONE`] in a gap.
    row: Vec<usize>,
    /// Present once a member has left. Until then each slot stands at its own place; most actors
    /// stand alone.
    left: Option<Box<Left>>,
    /// Slots whose workers have gone: the lowest is taken first.
    vacant: BTreeSet<usize>,
    /// How many members there may be.
    bounds: RangeInclusive<usize>,
}

/// What must be known once a member has left.
#[derive(Debug)]
struct Left {
    /// For each slot ever made: its place in the row; [`NONE`] if its worker is no member.
    places: Vec<usize>,
    /// How many places in the row are gaps.
    gaps: usize,
    /// Places in the row that were moved.
    #[cfg(test)]
    moved: usize,
}

impl Left {
    /// No member has left yet.
    fn nobody(members: usize) -> Self {
        Self {
            places: (0..members).collect(),
            gaps: 0,
            #[cfg(test)]
            moved: 0,
        }
    }

    fn close_up(&mut self, row: &mut Vec<usize>) {
        row.retain(|slot| *slot != NONE);
        self.gaps = 0;
        for (place, slot) in row.iter().enumerate() {
            self.places[*slot] = place;
        }
        #[cfg(test)]
        {
            self.moved += row.len();
        }
    }
}

impl Roster {
    pub(crate) fn new(workers: usize, bounds: RangeInclusive<usize>) -> Self {
        Self { row: (0..workers).collect(), left: None, vacant: BTreeSet::new(), bounds }
    }

    /// In the order of joining.
    pub(crate) fn members(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.row.iter().copied().filter(|slot| *slot != NONE)
    }

    pub(crate) fn has(&self, slot: usize) -> bool {
        match &self.left {
            None => slot < self.row.len(),
            Some(left) => left.places.get(slot).is_some_and(|place| *place != NONE),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.row.len() - self.left.as_ref().map_or(0, |left| left.gaps)
    }

    pub(crate) fn bounds(&self) -> RangeInclusive<usize> {
        self.bounds.clone()
    }

    pub(crate) fn set_bounds(&mut self, bounds: RangeInclusive<usize>) {
        self.bounds = bounds;
    }

    /// Slots ever made.
    pub(crate) fn made(&self) -> usize {
        self.left.as_ref().map_or(self.row.len(), |left| left.places.len())
    }

    /// A new member takes the lowest vacant slot, and stands behind the others.
    pub(crate) fn join(&mut self) -> usize {
        let slot = self.vacant.pop_first().unwrap_or_else(|| self.made());
        if let Some(left) = &mut self.left {
            if slot == left.places.len() {
                left.places.push(NONE);
            }
            left.places[slot] = self.row.len();
        }
        self.row.push(slot);
        slot
    }

    /// A member is on its way out. False when it is none.
    pub(crate) fn leave(&mut self, slot: usize) -> bool {
        if !self.has(slot) {
            return false;
        }
        let left = self.left.get_or_insert_with(|| Box::new(Left::nobody(self.row.len())));
        let place = std::mem::replace(&mut left.places[slot], NONE);
        self.row[place] = NONE;
        left.gaps += 1;
        if 2 * left.gaps > self.row.len() {
            left.close_up(&mut self.row);
        }
        true
    }

    /// The worker has gone, and its slot can be taken.
    pub(crate) fn vacate(&mut self, slot: usize) {
        self.vacant.insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;

    fn moved(roster: &Roster) -> usize {
        roster.left.as_ref().map_or(0, |left| left.moved)
    }

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
        assert!(moved(&roster) <= MANY, "{} were moved", moved(&roster));
        assert!((0..MANY).all(|slot| roster.join() == slot));
        assert_eq!((roster.made(), roster.len()), (MANY, MANY));
        // One comes and one goes, for ever.
        for _ in 0..10 * MANY {
            roster.vacate(7);
            assert!(roster.leave(7));
            assert_eq!(roster.join(), 7);
        }
        assert!(roster.members().eq((0..MANY).filter(|slot| *slot != 7).chain([7])));
        assert!(moved(&roster) <= 12 * MANY, "{} were moved", moved(&roster));
    }
}
