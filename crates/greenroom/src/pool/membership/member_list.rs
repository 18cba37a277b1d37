//! The members of a pool: the slots in the order in which their workers joined.

use std::{collections::BTreeSet, ops::RangeInclusive};

/// Used instead of a slot or place that does not exist.
const NONE: usize = usize::MAX;

/// The members of a pool. Joining and leaving takes constant time on average, because thousands may
/// leave one by one: a leaver leaves a gap in the row, and the row is compacted when half of it is
/// gaps.
#[derive(Debug)]
pub(crate) struct MemberList {
    /// Slots with a worker, or disabled, in the order of joining; [`NONE`] in a gap.
    row: Vec<usize>,
    /// Present once a member has left. Until then each slot is at its own place; most actors stand
    /// alone.
    left: Option<Box<Gaps>>,
    /// Slots whose workers have gone: the lowest is taken first.
    vacant: BTreeSet<usize>,
    /// The allowed number of members.
    bounds: RangeInclusive<usize>,
}

/// The state that is needed once a member has left.
#[derive(Debug)]
struct Gaps {
    /// For each slot ever made: its place in the row, or [`NONE`] if its worker is no member.
    places: Vec<usize>,
    /// The number of gaps in the row.
    gaps: usize,
    /// Places in the row that were moved.
    #[cfg(test)]
    moved: usize,
}

impl Gaps {
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

impl MemberList {
    pub(crate) fn new(workers: usize, bounds: RangeInclusive<usize>) -> Self {
        Self { row: (0..workers).collect(), left: None, vacant: BTreeSet::new(), bounds }
    }

    /// The slots in the order of joining, or sorted.
    pub(crate) fn in_order(&self, by_slot: bool) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots().collect();
        if by_slot {
            slots.sort_unstable();
        }
        slots
    }

    /// In the order of joining.
    pub(crate) fn slots(&self) -> impl DoubleEndedIterator<Item = usize> {
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

    /// The number of slots ever made.
    pub(crate) fn made(&self) -> usize {
        self.left.as_ref().map_or(self.row.len(), |left| left.places.len())
    }

    /// A new member takes the lowest vacant slot, and comes last in the order.
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

    /// A member is leaving. Returns false if it is no member.
    pub(crate) fn leave(&mut self, slot: usize) -> bool {
        if !self.has(slot) {
            return false;
        }
        let left = self.left.get_or_insert_with(|| Box::new(Gaps::nobody(self.row.len())));
        let place = std::mem::replace(&mut left.places[slot], NONE);
        self.row[place] = NONE;
        left.gaps += 1;
        if 2 * left.gaps > self.row.len() {
            left.close_up(&mut self.row);
        }
        true
    }

    /// The worker has gone, and its slot can be taken again.
    pub(crate) fn vacate(&mut self, slot: usize) {
        self.vacant.insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::MemberList;

    fn moved(member_list: &MemberList) -> usize {
        member_list.left.as_ref().map_or(0, |left| left.moved)
    }

    #[test]
    fn p13_the_lowest_vacant_slot_is_taken_and_new_members_stand_behind_the_old_ones() {
        let mut member_list = MemberList::new(4, 0..=8);
        assert!(member_list.leave(1) && member_list.leave(2) && !member_list.leave(2));
        assert_eq!(member_list.join(), 4, "their workers have not gone yet");
        member_list.vacate(2);
        member_list.vacate(1);
        assert_eq!((member_list.join(), member_list.join(), member_list.join()), (1, 2, 5));
        assert!(member_list.slots().eq([0, 3, 4, 1, 2, 5]));
        assert!(member_list.has(5) && !member_list.has(6));
        assert_eq!(member_list.made(), 6);
    }

    #[test]
    fn thousands_that_leave_one_by_one_move_each_other_a_few_times_at_most() {
        const MANY: usize = 65_536;
        let mut member_list = MemberList::new(MANY, 0..=MANY);
        for slot in (0..MANY).rev().filter(|slot| slot % 3 > 0).chain((0..MANY).step_by(3)) {
            assert!(member_list.leave(slot) && !member_list.leave(slot));
            member_list.vacate(slot);
        }
        assert_eq!((member_list.len(), member_list.slots().count()), (0, 0));
        assert!(moved(&member_list) <= MANY, "{} were moved", moved(&member_list));
        assert!((0..MANY).all(|slot| member_list.join() == slot));
        assert_eq!((member_list.made(), member_list.len()), (MANY, MANY));
        // One comes and one goes, forever.
        for _ in 0..10 * MANY {
            member_list.vacate(7);
            assert!(member_list.leave(7));
            assert_eq!(member_list.join(), 7);
        }
        assert!(member_list.slots().eq((0..MANY).filter(|slot| *slot != 7).chain([7])));
        assert!(moved(&member_list) <= 12 * MANY, "{} were moved", moved(&member_list));
    }
}
