//! How the positions of partitions move: for how long one has been the lowest open position, how
//! long ago a commit was stored, and how long a consumer that stores only the lowest position would
//! have waited.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::source::{Partition, PartitionStanding};

/// An input and a partition.
type PartitionPlace = (String, Partition);

/// All partitions that keep positions.
#[derive(Debug, Default)]
pub(super) struct Standings {
    places: HashMap<PartitionPlace, SeenPartition>,
    /// By input, including removed ones.
    avoided: HashMap<String, Duration>,
    looked: Option<Instant>,
}

/// One partition as it was last seen.
#[derive(Debug, Clone, Copy)]
struct SeenPartition {
    last: PartitionStanding,
    /// Since when its lowest open position has been that.
    open_since: Instant,
    /// When nothing was left to be stored, or something had been since the look before.
    stored_at: Instant,
}

/// How old things of a partition are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ages {
    /// For how long its lowest open position has been open; 0 if none is open.
    pub(super) oldest_open: Duration,
    /// How long something that was settled has waited to be stored, at most; 0 where nothing does.
    pub(super) commit: Duration,
}

impl Standings {
    /// The present positions. Partitions that are not among them are forgotten.
    pub(super) fn look<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a str, PartitionStanding)>,
        now: Instant,
    ) {
        let passed = self.looked.map(|at| now.saturating_duration_since(at)).unwrap_or_default();
        self.looked = Some(now);
        let mut places = HashMap::with_capacity(self.places.len());
        for (input, standing) in all {
            // Each of them would have waited, while the lowest was open, for as long as that.
            let ahead = u32::try_from(standing.ahead.positions).unwrap_or(u32::MAX);
            let avoided = passed.saturating_mul(ahead);
            match self.avoided.get_mut(input) {
                Some(sum) => *sum = sum.saturating_add(avoided),
                None => drop(self.avoided.insert(input.to_owned(), avoided)),
            }
            let place = (input.to_owned(), standing.partition);
            let seen = SeenPartition::after(self.places.get(&place).copied(), standing, now);
            places.insert(place, seen);
        }
        self.places = places;
    }

    /// How old things of this partition are.
    pub(super) fn ages(&self, input: &str, partition: Partition, now: Instant) -> Option<Ages> {
        let seen = self.places.get(&(input.to_owned(), partition))?;
        let age = |since: Instant, is_any: bool| match is_any {
            true => now.saturating_duration_since(since),
            false => Duration::ZERO,
        };
        Some(Ages {
            oldest_open: age(seen.open_since, seen.last.oldest_open < seen.last.next),
            commit: age(seen.stored_at, seen.last.ahead.not_stored > 0),
        })
    }

    /// For how long events together would have waited behind the lowest open position, by input.
    pub(super) fn avoided(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.avoided.iter().map(|(input, time)| (input.as_str(), *time))
    }
}

impl SeenPartition {
    fn after(before: Option<Self>, last: PartitionStanding, now: Instant) -> Self {
        let new = Self { last, open_since: now, stored_at: now };
        let Some(before) = before.filter(|before| before.last.epoch == last.epoch) else {
            return new;
        };
        let is_same = before.last.oldest_open == last.oldest_open
            && before.last.oldest_open < before.last.next;
        let waits = last.ahead.not_stored > 0 && before.last.ahead.not_stored > 0;
        let waits = waits && before.last.ahead.stored == last.ahead.stored;
        Self {
            last,
            open_since: if is_same { before.open_since } else { now },
            stored_at: if waits { before.stored_at } else { now },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watermark::{DoneAhead, Epoch, Positions, Watermark};

    const SECOND: Duration = Duration::from_secs(1);

    fn standing(epoch: Epoch, oldest_open: u64, next: u64) -> PartitionStanding {
        let ahead =
            DoneAhead { positions: (next - oldest_open).saturating_sub(1), ..DoneAhead::default() };
        let partition = Partition(3);
        PartitionStanding { partition, epoch, next, oldest_open, lag: None, ahead }
    }

    /// Looks at one partition of the input `i` each second.
    fn looks(all: &[PartitionStanding]) -> (Standings, Instant) {
        let (mut standings, mut now) = (Standings::default(), Instant::now());
        for one in all {
            now += SECOND;
            standings.look([("i", *one)].into_iter(), now);
        }
        (standings, now)
    }

    fn ages(all: &[PartitionStanding]) -> Ages {
        let (standings, now) = looks(all);
        standings.ages("i", Partition(3), now).unwrap()
    }

    #[test]
    fn o03_a_position_is_as_old_as_it_has_been_the_lowest_open_one_in_its_epoch() {
        let first = Epoch::default();
        let second = Watermark::default().assign(&Positions::default());
        let open = |epoch| standing(epoch, 5, 9);
        assert_eq!(ages(&[open(first); 4]).oldest_open, 3 * SECOND);
        assert_eq!(
            ages(&[open(first), open(first), standing(first, 6, 9)]).oldest_open.as_secs(),
            0
        );
        assert_eq!(ages(&[open(first), open(first), open(second)]).oldest_open, Duration::ZERO);
        let idle = standing(first, 9, 9);
        assert_eq!(ages(&[idle; 3]).oldest_open, Duration::ZERO, "nothing is open");
        assert_eq!(
            ages(&[idle, idle, standing(first, 9, 10), standing(first, 9, 10)]).oldest_open,
            SECOND,
            "what came after an idle time is not as old as that",
        );
    }

    #[test]
    fn o03_a_commit_is_as_old_as_nothing_was_stored_of_what_waits_for_it() {
        let with = |stored, not_stored| {
            let one = standing(Epoch::default(), 5, 5);
            PartitionStanding { ahead: DoneAhead { stored, not_stored, ..one.ahead }, ..one }
        };
        assert_eq!(ages(&[with(0, 3), with(0, 5), with(0, 9)]).commit, 2 * SECOND);
        assert_eq!(ages(&[with(0, 3), with(0, 5), with(5, 4)]).commit, Duration::ZERO);
        assert_eq!(ages(&[with(0, 3), with(3, 0), with(3, 0)]).commit, Duration::ZERO);
        assert_eq!(ages(&[with(3, 0), with(3, 1), with(3, 2)]).commit, SECOND);
    }

    #[test]
    fn o03_what_is_done_behind_an_open_position_has_not_waited_for_it() {
        let open = standing(Epoch::default(), 5, 16);
        let (mut standings, now) = looks(&[open; 4]);
        let of =
            |standings: &Standings| standings.avoided().map(|(_, time)| time).sum::<Duration>();
        assert_eq!(of(&standings), 30 * SECOND, "ten events for three seconds");
        standings.look(std::iter::empty(), now + SECOND);
        assert_eq!(of(&standings), 30 * SECOND, "what was counted stays when its input is gone");
        assert_eq!(standings.ages("i", Partition(3), now), None);
    }
}
