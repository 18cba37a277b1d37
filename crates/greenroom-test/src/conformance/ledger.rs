//! The history of each event, over all runs of a check, and the violations in it.
//!
//! ```text
//! published ─▶ given ─▶ started ─▶ finished ─▶ settled ─▶ covered by a commit
//!                │         │                                └ is it acknowledged?
//!                │         └ is its key in hand? its assignment revoked? is it in order?
//!                └ is its position above the last? is it behind the one before of its key?
//!                  is its partition paused, or taken away?
//! ```
//!
//! A violation is kept, and ends every wait.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use greenroom_bus::{
    settlement::Settled,
    source::{Partition, Taken},
    wait::wait_until,
    watermark::Positions,
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

use super::connector::{Body, Item};

/// Violations to keep: the first says most.
const KEPT: usize = 5;

/// Shared by the check, the watched source and the handler.
pub(super) struct Ledger {
    book: Mutex<Book>,
    changed: Notify,
}

/// The known history.
pub(super) struct Book {
    /// Whether positions mean the same in each run.
    has_lasting_positions: bool,
    published: Vec<Published>,
    by_name: HashMap<String, usize>,
    /// Published events per key so far.
    of_key: HashMap<String, usize>,
    runs: Runs,
    given: Vec<Given>,
    /// The item at a position of a partition.
    at: HashMap<(Partition, u64), usize>,
    /// Keys that a handler has in hand.
    in_hand: HashSet<String>,
    paused: Vec<Partition>,
    settled: SettledSoFar,
    violations: Vec<String>,
}

#[derive(Default)]
struct Runs {
    run: u32,
    /// The assignment of each partition in this run.
    assignments: BTreeMap<Partition, Assignment>,
    /// The number of the last assignment.
    last_assignment: u32,
}

/// Totals over all runs.
#[derive(Default)]
struct SettledSoFar {
    /// Letters by published item.
    letters: HashMap<usize, u32>,
    acknowledged: u64,
    /// How many were acknowledged when the last stored commit began.
    covered: u64,
}

struct Published {
    /// The id of an event, or the bytes of a record that is none.
    name: String,
    partition: Partition,
    /// Its key, and its number among the events of that key, from 1.
    key: Option<(String, usize)>,
    /// Whether it was acknowledged.
    done: bool,
    times_given: u32,
}

/// One delivery of an item.
struct Given {
    item: usize,
    run: u32,
    assignment: u32,
    partition: Partition,
    position: u64,
    /// Whether it was acknowledged before it was given.
    is_repeat: bool,
    settled: Option<Settled>,
}

#[derive(Default)]
struct Assignment {
    number: u32,
    /// None of it may begin, nor be given, until it is given back.
    is_revoked: bool,
    /// The highest position that was given.
    last: u64,
    /// Positions that were given.
    positions: HashSet<u64>,
    /// The given and the started items.
    given: HashSet<usize>,
    started: HashSet<usize>,
    /// For each key, the highest given and the highest started number.
    keys: HashMap<String, (usize, usize)>,
}

/// The identity of an event's delivery: a local value of the event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(usize);

impl Ledger {
    pub(super) fn new(has_lasting_positions: bool) -> Self {
        Self { book: Mutex::new(Book::new(has_lasting_positions)), changed: Notify::new() }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let changed = change(&mut self.book.lock());
        self.changed.notify_waiters();
        changed
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        look(&self.book.lock())
    }

    pub(super) fn publishes(&self, items: &[Item]) {
        self.change(|book| items.iter().for_each(|item| book.publish(item)));
    }

    /// Another source is opened. The deliveries in the last one's hands are no longer in hand.
    pub(super) fn begins_run(&self) {
        self.change(|book| {
            book.runs.run += 1;
            book.runs.assignments.clear();
            book.in_hand.clear();
            book.paused.clear();
        });
    }

    /// An item was given. Marks an event.
    pub(super) fn gives(&self, partition: Partition, taken: &mut Taken) {
        self.change(|book| book.give(partition, taken));
    }

    /// The source was told to give nothing from these.
    pub(super) fn pauses(&self, paused: &[Partition]) {
        self.change(|book| book.paused = paused.to_vec());
    }

    /// The engine has answered that no event of this partition will begin.
    pub(super) fn revokes(&self, partition: Partition) {
        self.change(|book| book.assignment(partition).is_revoked = true);
    }

    /// It is about to be given back.
    pub(super) fn assigns(&self, partition: Partition) {
        self.change(|book| book.runs.assignments.remove(&partition));
    }

    /// The number of a partition's current assignment.
    pub(super) fn assignment(&self, partition: Partition) -> u32 {
        self.change(|book| book.assignment(partition).number)
    }

    pub(super) fn settles(
        &self,
        (partition, assignment): (Partition, u32),
        position: u64,
        how: Settled,
    ) {
        self.change(|book| book.settle((partition, assignment), position, how));
    }

    /// A commit begins. It must cover all current acknowledgements.
    pub(super) fn begins_commit(&self) -> u64 {
        self.look(|book| book.settled.acknowledged)
    }

    /// The commit is stored, with these positions if they can be read.
    pub(super) fn commits(&self, began_with: u64, stored: &[(Partition, Positions)]) {
        self.change(|book| {
            book.settled.covered = book.settled.covered.max(began_with);
            book.check_stored(stored);
        });
    }

    /// A handler takes the event in hand.
    pub(super) fn starts(&self, mark: Mark, attempt: u32) {
        self.change(|book| book.start(mark, attempt));
    }

    /// The handler releases it, however that ended.
    pub(super) fn lets_go(&self, mark: Mark) {
        self.change(|book| {
            let item = book.given[mark.0].item;
            if let Some((key, _)) = &book.published[item].key {
                book.in_hand.remove(key);
            }
        });
    }

    /// A dead letter with these bytes, or for this event.
    pub(super) fn buries(&self, name: &str, position: u64) {
        self.change(|book| book.bury(name, position));
    }

    /// Notes a violation.
    pub(super) fn fails(&self, what: String) {
        self.change(|book| book.fail(what));
    }

    /// Waits until the condition holds.
    ///
    /// # Errors
    /// There is a violation, or the condition does not hold after this long.
    pub(super) async fn until(
        &self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Book) -> bool,
    ) -> Result<(), String> {
        let is_over = |book: &Book| is_so(book) || !book.violations.is_empty();
        let wait = wait_until(&self.changed, || self.look(is_over).then_some(()));
        let came = timeout(patience, wait).await;
        self.verdict()?;
        came.map_err(|_| format!("after {patience:?}: not {what}; {}", self.look(Book::summary)))
    }

    /// # Errors
    /// The violation.
    pub(super) fn verdict(&self) -> Result<(), String> {
        self.look(|book| match book.violations.as_slice() {
            [] => Ok(()),
            violations => Err(violations.join("; ")),
        })
    }
}

impl Book {
    fn new(has_lasting_positions: bool) -> Self {
        Self {
            has_lasting_positions,
            published: Vec::new(),
            by_name: HashMap::new(),
            of_key: HashMap::new(),
            runs: Runs::default(),
            given: Vec::new(),
            at: HashMap::new(),
            in_hand: HashSet::new(),
            paused: Vec::new(),
            settled: SettledSoFar::default(),
            violations: Vec::new(),
        }
    }

    fn fail(&mut self, what: String) {
        if self.violations.len() < KEPT {
            self.violations.push(what);
        }
    }

    fn publish(&mut self, item: &Item) {
        let (name, key) = match &item.body {
            Body::Event(event) => {
                (event.id().to_owned(), event.subject().map(|key| key.to_string()))
            }
            Body::Malformed(raw) => (String::from_utf8_lossy(raw).into_owned(), None),
            Body::Gap => return,
        };
        let key = key.map(|key| {
            let number = self.of_key.entry(key.clone()).or_default();
            *number += 1;
            (key, *number)
        });
        self.by_name.insert(name.clone(), self.published.len());
        let partition = item.partition;
        self.published.push(Published { name, partition, key, done: false, times_given: 0 });
    }

    fn assignment(&mut self, partition: Partition) -> &mut Assignment {
        self.runs.assignments.entry(partition).or_insert_with(|| {
            self.runs.last_assignment += 1;
            Assignment { number: self.runs.last_assignment, ..Assignment::default() }
        })
    }

    fn give(&mut self, partition: Partition, taken: &mut Taken) {
        let (position, mark) = (taken.position, Mark(self.given.len()));
        let name = match &taken.event {
            Ok(event) => event.id().to_owned(),
            Err(malformed) => String::from_utf8_lossy(&malformed.raw).into_owned(),
        };
        let Some(item) = self.by_name.get(&name).copied() else {
            return self.fail(format!(
                "{name:?} at {position} of {partition} was given and never published"
            ));
        };
        if self.paused.contains(&partition) {
            self.fail(format!("{name} of partition {partition} was given while that was paused"));
        }
        self.check_position(partition, position, item);
        self.check_order(partition, item);
        let Assignment { number, is_revoked, .. } = *self.assignment(partition);
        if is_revoked {
            self.fail(format!(
                "{name} of partition {partition} was given after that was taken away"
            ));
        }
        let is_repeat = self.published[item].done;
        self.published[item].times_given += 1;
        self.given.push(Given {
            item,
            run: self.runs.run,
            assignment: number,
            partition,
            position,
            is_repeat,
            settled: None,
        });
        if let Ok(event) = &mut taken.event {
            *event = event.clone().with_local(mark);
        }
    }

    /// Positions rise within an assignment, except for repeats, and keep their items.
    fn check_position(&mut self, partition: Partition, position: u64, item: usize) {
        let assignment = self.assignment(partition);
        let (last, is_new) = (assignment.last, assignment.positions.insert(position));
        assignment.last = last.max(position);
        if is_new && position < last {
            self.fail(format!(
                "position {position} of partition {partition} was given after {last}"
            ));
        }
        let before = if self.has_lasting_positions {
            self.at.insert((partition, position), item)
        } else {
            None
        };
        if let Some(before) = before.filter(|before| *before != item) {
            let (before, now) = (&self.published[before].name, &self.published[item].name);
            let what = format!(
                "position {position} of partition {partition} was {before:?} and is {now:?}"
            );
            self.fail(what);
        }
    }

    /// The first delivery of an event in an assignment comes after those before it in its key.
    fn check_order(&mut self, partition: Partition, item: usize) {
        let Published { name, key: Some((key, number)), .. } = &self.published[item] else {
            return;
        };
        let (name, key, number) = (name.clone(), key.clone(), *number);
        let assignment = self.assignment(partition);
        let is_new = assignment.given.insert(item);
        let last = assignment.keys.entry(key.clone()).or_default();
        let before = last.0;
        last.0 = before.max(number);
        if number < before && is_new {
            self.fail(format!(
                "{name} of key {key} is number {number} of it, and was given after number {before}"
            ));
        }
    }

    fn settle(&mut self, (partition, assignment): (Partition, u32), position: u64, how: Settled) {
        let is_it = |given: &&mut Given| {
            (given.partition, given.assignment, given.position) == (partition, assignment, position)
                && given.settled.is_none()
        };
        let Some(given) = self.given.iter_mut().rev().find(is_it) else {
            return self.fail(format!(
                "position {position} of partition {partition} was settled more often than given"
            ));
        };
        given.settled = Some(how);
        if how.is_acknowledged() {
            self.published[given.item].done = true;
            self.settled.acknowledged += 1;
        }
    }

    fn check_stored(&mut self, stored: &[(Partition, Positions)]) {
        for (partition, positions) in stored {
            let covered = self.at.iter().filter(|((of, position), item)| {
                of == partition && positions.is_done(*position) && !self.published[**item].done
            });
            let covered = covered.map(|((_, position), _)| *position).min();
            if let Some(position) = covered {
                self.fail(format!(
                    "a commit covers position {position} of partition {partition}, which is not acknowledged"
                ));
            }
        }
    }

    fn start(&mut self, mark: Mark, attempt: u32) {
        let Given { item, run, assignment, partition, .. } = self.given[mark.0];
        let Published { name, key, .. } = &self.published[item];
        let (name, key) = (name.clone(), key.clone());
        let (is_now, of) = (run == self.runs.run, self.assignment(partition));
        if is_now && (of.number != assignment || of.is_revoked) {
            self.fail(format!(
                "attempt {attempt} of {name} began after its partition {partition} was taken away"
            ));
        }
        let Some((key, number)) = key else { return };
        let of = self.assignment(partition);
        let is_new = of.started.insert(item);
        let last = of.keys.entry(key.clone()).or_default();
        let before = last.1;
        last.1 = before.max(number);
        if number < before && is_new {
            self.fail(format!("{name} of key {key} began after number {before} of that"));
        }
        if !self.in_hand.insert(key.clone()) {
            self.fail(format!("key {key} is in hand twice: {name}, attempt {attempt}"));
        }
    }

    fn bury(&mut self, name: &str, position: u64) {
        let Some(item) = self.by_name.get(name).copied() else {
            return self
                .fail(format!("a dead letter has other bytes than were published: {name:?}"));
        };
        *self.settled.letters.entry(item).or_default() += 1;
        let stood = self.given.iter().any(|given| given.item == item && given.position == position);
        if !stood {
            self.fail(format!(
                "the dead letter of {name:?} names position {position}, where it was not"
            ));
        }
    }

    /// The progress, for a wait that failed.
    pub(super) fn summary(&self) -> String {
        let undone: Vec<_> = self.published.iter().filter(|item| !item.done).collect();
        let names: Vec<_> = undone.iter().take(KEPT).map(|item| item.name.as_str()).collect();
        let never = undone.iter().filter(|item| item.times_given == 0).count();
        format!(
            "of {} published {} are not acknowledged, {never} of which were never given: {}{}",
            self.published.len(),
            undone.len(),
            names.join(", "),
            if undone.len() > KEPT { ", .." } else { "" },
        )
    }

    /// Everything is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.published.iter().all(|item| item.done)
    }

    /// Everything is acknowledged, except for these and the events behind them in their lines.
    pub(super) fn is_done_but(&self, stuck: &[String]) -> bool {
        let key_of = |name: &String| {
            self.by_name.get(name).and_then(|item| self.published[*item].key.clone())
        };
        let lines: HashMap<String, usize> = stuck.iter().filter_map(key_of).collect();
        self.published.iter().all(|item| {
            let is_behind = |(key, number): &(String, usize)| {
                lines.get(key).is_some_and(|stuck| number >= stuck)
            };
            item.done || item.key.as_ref().is_some_and(is_behind)
        })
    }

    /// Acknowledged so far, repeats included.
    pub(super) fn acknowledged(&self) -> u64 {
        self.settled.acknowledged
    }

    /// Events that were acknowledged since the last stored commit began.
    pub(super) fn uncovered(&self) -> u64 {
        self.settled.acknowledged - self.settled.covered
    }

    /// Deliveries of this run.
    pub(super) fn count_given(&self) -> u64 {
        self.of_run().count() as u64
    }

    /// Deliveries of this run, of this partition.
    pub(super) fn count_given_of(&self, partition: Partition) -> u64 {
        self.of_run().filter(|given| given.partition == partition).count() as u64
    }

    /// Deliveries of this run that had been acknowledged before.
    pub(super) fn count_repeats(&self) -> u64 {
        self.of_run().filter(|given| given.is_repeat).count() as u64
    }

    /// Deliveries of this run, of these partitions, that were acknowledged.
    pub(super) fn count_done_of(&self, is_of: impl Fn(Partition) -> bool) -> u64 {
        let done = |given: &&Given| given.settled.is_some_and(Settled::is_acknowledged);
        self.of_run().filter(|given| is_of(given.partition)).filter(done).count() as u64
    }

    /// Everything that was published in these partitions is acknowledged.
    pub(super) fn is_done_of(&self, is_of: impl Fn(Partition) -> bool) -> bool {
        self.published.iter().all(|item| item.done || !is_of(item.partition))
    }

    /// Deliveries of this run that are not settled.
    pub(super) fn count_unsettled(&self) -> u64 {
        self.of_run().filter(|given| given.settled.is_none()).count() as u64
    }

    /// Published items, and the number of dead letters for each.
    pub(super) fn letters(&self) -> impl Iterator<Item = (&str, u32)> {
        let of = |item: usize| self.settled.letters.get(&item).copied().unwrap_or_default();
        self.published.iter().enumerate().map(move |(item, published)| (&*published.name, of(item)))
    }

    pub(super) fn is_paused(&self, partition: Partition) -> bool {
        self.paused.contains(&partition)
    }

    pub(super) fn is_revoked(&self, partition: Partition) -> bool {
        self.runs.assignments.get(&partition).is_some_and(|assignment| assignment.is_revoked)
    }

    fn of_run(&self) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(|given| given.run == self.runs.run)
    }
}
