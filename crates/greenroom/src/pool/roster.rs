//! Who is in a pool: the slots in the order in which their workers joined.

use std::{collections::BTreeSet, ops::RangeInclusive};

/// The members of a pool.
#[derive(Debug)]
pub(crate) struct Roster {
    /// Slots with a worker, or disabled, in the order of joining.
    members: Vec<usize>,
    /// Slots whose workers have gone: the lowest is taken first.
    vacant: BTreeSet<usize>,
    /// Slots ever made.
    made: usize,
    /// How many members there may be.
    bounds: RangeInclusive<usize>,
}

impl Roster {
    pub(crate) fn new(workers: usize, bounds: RangeInclusive<usize>) -> Self {
        Self { members: (0..workers).collect(), vacant: BTreeSet::new(), made: workers, bounds }
    }

    pub(crate) fn members(&self) -> &[usize] {
        &self.members
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn bounds(&self) -> RangeInclusive<usize> {
        self.bounds.clone()
    }

    /// Slots ever made.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// A new member takes the lowest vacant slot, and stands behind the others.
    pub(crate) fn join(&mut self) -> usize {
        let slot = self.vacant.pop_first().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        });
        self.members.push(slot);
        slot
    }

    /// A member is on its way out. False when it is none.
    pub(crate) fn leave(&mut self, slot: usize) -> bool {
        let before = self.members.len();
        self.members.retain(|member| *member != slot);
        self.members.len() < before
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
        assert_eq!(roster.members(), [0, 3, 4, 1, 2, 5]);
        assert_eq!(roster.made(), 6);
    }
}
