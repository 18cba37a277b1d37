//! Rebalances (F04).
//!
//! The callback records the assignment or revocation, and returns. The work happens here, and
//! librdkafka waits for it, however long that takes.
//!
//! * **Assigned**: the offsets are asked for on another thread; with the answer an epoch begins,
//!   and the partitions are assigned.
//! * **Revoked**: nothing more is taken, and ready records are dropped. The engine is notified, and
//!   gives up the waiting events. Once nothing is in hand, or the budget has passed, a last commit
//!   is made. With its answer the epoch ends, and only then are the partitions unassigned.
//! * **Lost**: another member may have them already. The epoch ends at once, without a commit.

use std::{
    sync::{atomic::Ordering, mpsc},
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::source::{Partition, StartAt};
use greenroom_config::plural;
use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{Consumer, RebalanceProtocol},
    error::KafkaError,
};

use super::{
    super::{
        context::Said,
        offsets::{self, Answer, Answered, Beginning, HowToBegin},
        shared::{Part, Shared},
    },
    AssignedPartition, Assigning, Poller, Rebalance,
    read_to::ReadTo,
};
use crate::{
    client::{advice, code},
    place::{Place, spans},
};

/// Between questions for offsets that were not answered.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The timeout for the last commit of a revoked partition.
const LAST_COMMIT: Duration = Duration::from_secs(5);

/// The progress of the group in these partitions, if it has committed any (C16). How much was taken
/// after that is not known.
fn resumed(beginnings: &[Beginning]) -> Option<String> {
    let committed = beginnings.iter().filter(|beginning| beginning.is_committed);
    let (mut partitions, mut done, mut open) = (0_u64, 0, 0);
    for Beginning { positions, .. } in committed {
        partitions += 1;
        done += positions.count_done();
        open += positions.count_open();
    }
    (partitions > 0).then(|| {
        format!(
            "resumed: {}, {} remembered, at most {open} delivered again, and what was taken since \
             the last commit",
            plural(partitions as usize, "partition"),
            plural(done as usize, "done event")
        )
    })
}

impl Poller {
    pub(super) fn rebalance(&mut self) {
        self.rebalances.rebalance = match self.rebalances.rebalance.take() {
            None => match self.rebalances.later.pop_front() {
                Some(Said::Assigned(places)) => Some(self.begin_assign(places)),
                Some(Said::Revoked { places, is_lost }) => self.begin_revoke(places, is_lost),
                _ => None,
            },
            Some(Rebalance::Assigning(assigning)) if !self.rebalances.later.is_empty() => {
                self.put_off(assigning.places);
                None
            }
            Some(Rebalance::Assigning(assigning)) => self.go_on_to_assign(assigning),
            Some(Rebalance::Revoking { places, numbers, since, last_commit }) => {
                self.go_on_to_revoke(places, numbers, since, last_commit)
            }
        };
    }

    fn is_cooperative(&self) -> bool {
        matches!(self.consumer.rebalance_protocol(), RebalanceProtocol::Cooperative)
    }

    /// Another rebalance came before these were assigned. librdkafka counts them as given, and does
    /// not name them again: those that are not revoked are assigned after it.
    fn put_off(&mut self, mut places: Vec<Place>) {
        // The next eager assignment names all there are.
        if !self.is_cooperative() {
            return;
        }
        let later = &mut self.rebalances.later;
        match later.front_mut() {
            Some(Said::Assigned(more)) => {
                more.append(&mut places);
                more.sort_unstable();
                more.dedup();
            }
            Some(Said::Revoked { places: gone, .. }) => {
                places.retain(|place| !gone.contains(place));
                if !places.is_empty() {
                    later.insert(1, Said::Assigned(places));
                }
            }
            _ => {}
        }
    }

    pub(super) fn ask(&self, places: &[Place]) -> mpsc::Receiver<Answer> {
        offsets::ask(&self.consumer, places, HowToBegin::of_input(&self.setup.input), &self.known)
    }

    fn begin_assign(&self, places: Vec<Place>) -> Rebalance {
        let answer = self.ask(&places);
        Rebalance::Assigning(Assigning {
            places,
            answer,
            again: None,
            failed: None,
            has_assigned: false,
        })
    }

    fn go_on_to_assign(&mut self, mut assigning: Assigning) -> Option<Rebalance> {
        if let Some(at) = assigning.again {
            if Instant::now() >= at {
                assigning.answer = self.ask(&assigning.places);
                assigning.again = None;
            }
            return Some(Rebalance::Assigning(assigning));
        }
        match assigning.answer.try_recv() {
            Ok(Ok(answered)) => self.assign_known(assigning, answered),
            Ok(Err(error)) => Some(self.ask_later(assigning, error)),
            Err(mpsc::TryRecvError::Empty) => Some(Rebalance::Assigning(assigning)),
            Err(mpsc::TryRecvError::Disconnected) => {
                assigning.again = Some(Instant::now() + ASK_AGAIN);
                Some(Rebalance::Assigning(assigning))
            }
        }
    }

    /// Assigns those whose start is known. The others are looked up again.
    fn assign_known(
        &mut self,
        mut assigning: Assigning,
        Answered { beginnings, unknown }: Answered,
    ) -> Option<Rebalance> {
        let (places, errors): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        assigning.places = places;
        let Some(why) = errors.into_iter().next() else {
            self.assign(beginnings);
            return None;
        };
        if !self.is_cooperative() {
            // It would replace the assignment: it has to include all of them, or wait.
            let known = beginnings.into_iter().map(|beginning| beginning.place);
            assigning.places.extend(known);
        } else if !assigning.has_assigned || !beginnings.is_empty() {
            // librdkafka, and with it the group, waits for the first, be it empty.
            self.assign(beginnings);
            assigning.has_assigned = true;
        }
        Some(self.ask_later(assigning, why))
    }

    fn ask_later(&self, assigning: Assigning, error: KafkaError) -> Rebalance {
        if offsets::is_worth_saying(&error, assigning.failed.as_ref()) {
            let (name, places) = (&self.shared.name, &assigning.places);
            let first = places.first().map_or_else(String::new, ToString::to_string);
            tracing::warn!(
                "{name}: where to begin is not known yet in {} partitions, {first} and on: \
                 {error}{}",
                places.len(),
                advice(code(&error))
            );
        }
        let again = Some(Instant::now() + ASK_AGAIN);
        Rebalance::Assigning(Assigning { again, failed: Some(error), ..assigning })
    }

    fn assign(&mut self, beginnings: Vec<Beginning>) {
        if let Some(resumed) = resumed(&beginnings) {
            tracing::info!("{}: {resumed}", self.shared.name);
        }
        self.contact.is_assigned(!beginnings.is_empty());
        let mut list = TopicPartitionList::with_capacity(beginnings.len());
        for beginning in beginnings {
            let Place { topic, partition } = &beginning.place;
            let from = i64::try_from(beginning.from).unwrap_or(i64::MAX);
            if let Err(error) = list.add_partition_offset(topic, *partition, Offset::Offset(from)) {
                tracing::warn!("{}: {topic}/{partition}: {error}", self.shared.name);
                continue;
            }
            self.begin_reading(beginning);
        }
        let assigned = match self.is_cooperative() {
            true => self.consumer.incremental_assign(&list),
            false => self.consumer.assign(&list),
        };
        if let Err(error) = assigned {
            tracing::warn!("{}: partitions cannot be assigned: {error}", self.shared.name);
        }
        self.show_status();
    }

    /// An epoch begins.
    fn begin_reading(&mut self, beginning: Beginning) {
        let Beginning { place, positions, from, is_committed, is_of_former, remark } = beginning;
        let number = self.numbers.number(&place);
        if let Some(remark) = remark {
            tracing::warn!("{}: partition {place}: {remark}", self.shared.name);
        }
        let (lowest, done) = (positions.lowest(), positions.count_done());
        tracing::debug!(
            "{}: partition {place} is read from offset {lowest} on, of which {done} behind it are done",
            self.shared.name
        );
        // Its queue is split off before it is assigned: records arrive there from the first one on,
        // in order.
        let queue = self.consumer.split_partition_queue(&place.topic, place.partition);
        let queue = queue.map(|mut queue| {
            let poller = thread::current();
            queue.set_nonempty_callback(move || poller.unpark());
            queue
        });
        self.shared.names.is(number, &place);
        let mut state = self.shared.state.lock();
        let tracker = state.trackers.entry(number).or_default().clone();
        let epoch = tracker.watermark.lock().assign(&positions);
        tracker.is_watched.store(false, Ordering::Relaxed);
        state.parts.insert(number, Part::new(epoch, tracker.clone()));
        drop(state);
        // A commit of another program is replaced by one in our format: it is read once.
        let is_ours = is_committed && !is_of_former;
        let committed = is_ours.then(|| (lowest, self.limits.encode(&positions).text));
        let reading = AssignedPartition {
            place,
            epoch,
            tracker,
            queue,
            read: ReadTo::starting_at(from),
            anew: None,
            sought: None,
            at_end: None,
            committed,
            full: None,
            told_full: None,
        };
        self.commits.has_begun |= !is_committed && self.setup.input.start == StartAt::Latest;
        self.reading.insert(number, reading);
    }

    fn begin_revoke(&mut self, places: Vec<Place>, is_lost: bool) -> Option<Rebalance> {
        let is_one = |reading: &AssignedPartition| places.contains(&reading.place);
        let numbers: Vec<Partition> =
            self.reading.iter().filter(|(_, reading)| is_one(reading)).map(|(of, _)| *of).collect();
        for number in &numbers {
            self.stop_reading(*number);
        }
        self.shared.changed.notify_one();
        if is_lost {
            self.lose(&numbers);
        }
        if is_lost || numbers.is_empty() {
            self.unassign(&places);
            return None;
        }
        let since = Instant::now();
        Some(Rebalance::Revoking { places, numbers, since, last_commit: None })
    }

    fn stop_reading(&mut self, number: Partition) {
        let Some(reading) = self.reading.get_mut(&number) else { return };
        reading.queue = None;
        reading.tracker.is_watched.store(true, Ordering::Relaxed);
        withdraw(&self.shared, number, reading);
    }

    fn lose(&mut self, numbers: &[Partition]) {
        let readings = || numbers.iter().filter_map(|number| self.reading.get(number));
        if readings().next().is_some() {
            let places = spans(readings().map(|reading| &reading.place));
            let (name, open, why) =
                (&self.shared.name, self.count_in_hand(numbers), self.why_lost());
            tracing::warn!(
                "{name}: partitions are lost, as {why}: {places}; their next owner handles again \
                 what was not committed; {open} events of them are in hand"
            );
        }
        self.contact.has_joined = false;
        self.finish(numbers);
    }

    fn go_on_to_revoke(
        &mut self,
        places: Vec<Place>,
        numbers: Vec<Partition>,
        since: Instant,
        last_commit: Option<Instant>,
    ) -> Option<Rebalance> {
        let now = Instant::now();
        if self.consumer.assignment_lost() {
            self.lose(&numbers);
            self.unassign(&places);
            return None;
        }
        if last_commit.is_some_and(|until| now < until) {
            return Some(Rebalance::Revoking { places, numbers, since, last_commit });
        }
        if last_commit.is_some() {
            tracing::warn!(
                "{}: the last commit of partitions that are given away is not answered; what it \
                 would have said is handled again",
                self.shared.name
            );
            self.finish(&numbers);
            self.unassign(&places);
            return None;
        }
        let in_hand = self.count_in_hand(&numbers);
        let is_told = self.is_answered(&numbers);
        let is_over = now - since > self.setup.input.drain_budget;
        if !is_over && (in_hand > 0 || !is_told) {
            return Some(Rebalance::Revoking { places, numbers, since, last_commit });
        }
        if in_hand > 0 {
            let (name, budget) = (&self.shared.name, self.setup.input.drain_budget);
            tracing::warn!(
                "{name}: {in_hand} events of partitions that are given away are still in hand after \
                 {budget:?}; their next owner handles them again, perhaps at the same time"
            );
        }
        let last_commit = Some(now + LAST_COMMIT);
        Some(Rebalance::Revoking { places, numbers, since, last_commit })
    }

    fn count_in_hand(&self, numbers: &[Partition]) -> u64 {
        let readings = numbers.iter().filter_map(|number| self.reading.get(number));
        readings.map(|reading| reading.tracker.watermark.lock().in_hand()).sum()
    }

    fn is_answered(&self, numbers: &[Partition]) -> bool {
        let mut state = self.shared.state.lock();
        if state.dropped.is_some() {
            state.leaving.clear();
        }
        !numbers.iter().any(|number| state.leaving.contains_key(number))
    }

    /// Their epochs end.
    fn finish(&mut self, numbers: &[Partition]) {
        for number in numbers {
            if let Some(reading) = self.reading.remove(number) {
                reading.tracker.watermark.lock().revoke();
                reading.tracker.is_watched.store(false, Ordering::Relaxed);
            }
        }
    }

    /// The last commit was answered, however that was.
    pub(super) fn is_last_committed(&mut self) {
        match self.rebalances.rebalance.take() {
            Some(Rebalance::Revoking { places, numbers, last_commit: Some(_), .. }) => {
                self.finish(&numbers);
                self.unassign(&places);
            }
            other => self.rebalances.rebalance = other,
        }
    }

    fn unassign(&self, places: &[Place]) {
        let done = match self.is_cooperative() {
            true => self.consumer.incremental_unassign(&self.assigned_of(places)),
            false => self.consumer.unassign(),
        };
        if let Err(error) = done {
            tracing::warn!("{}: partitions cannot be given away: {error}", self.shared.name);
        }
    }

    /// The assigned ones: librdkafka refuses a list with any other, and waits for ever.
    fn assigned_of(&self, places: &[Place]) -> TopicPartitionList {
        let assigned = self.consumer.assignment().ok();
        let mut list = TopicPartitionList::with_capacity(places.len());
        for Place { topic, partition } in places {
            let is_in = |of: &TopicPartitionList| of.find_partition(topic, *partition).is_some();
            if assigned.as_ref().is_none_or(is_in) {
                list.add_partition(topic, *partition);
            }
        }
        list
    }
}

/// Its ready records are dropped, and the engine is notified.
pub(super) fn withdraw(shared: &Shared, number: Partition, reading: &AssignedPartition) {
    let mut state = shared.state.lock();
    let Some(part) = state.parts.remove(&number) else { return };
    let mut watermark = reading.tracker.watermark.lock();
    for taken in &part.ready {
        watermark.refuse(reading.epoch, taken.position);
    }
    if part.has_given && state.dropped.is_none() {
        state.leaving.insert(number, false);
    }
    shared.changed.notify_one();
}

#[cfg(test)]
mod tests {
    use greenroom_bus::watermark::Positions;

    use super::*;

    fn beginning(partition: i32, positions: Positions, is_committed: bool) -> Beginning {
        let (place, from) = (Place::new("orders", partition), positions.lowest());
        Beginning { place, positions, from, is_committed, is_of_former: false, remark: None }
    }

    #[test]
    fn c16_what_a_group_has_left_is_told_and_a_new_group_has_left_nothing() {
        let new = beginning(0, Positions::starting_at(7), false);
        assert_eq!(resumed(std::slice::from_ref(&new)), None);
        let open = [10..11, 14..16];
        let left = beginning(1, Positions::new(20, open).unwrap(), true);
        assert_eq!(
            resumed(&[new, left, beginning(2, Positions::starting_at(5), true)]).unwrap(),
            "resumed: 2 partitions, 7 done events remembered, at most 3 delivered again, and what was \
             taken since the last commit"
        );
    }
}
