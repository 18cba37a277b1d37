//! The inputs of an engine: those that it was built with, and those that come and go while it runs
//! (G01).
//!
//! ```text
//! add ──▶ arrivals ──▶ the run begins to read ──▶ ended, or removed ──▶ all that it gave is settled: its name is free
//!  │                                                                                  (what it was stays for the report)
//!  └── closed once the last one has ended, or the run is to end: the source is given back
//! ```
//!
//! An event names its input by its slot. Slots are never reused, so events of an input are not
//! confused with those of a later input of the same name. Each slot costs some hundred bytes until
//! the end of the run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::{
    budget::InputConfig,
    input::{Input, Partitions, StillReading, UnderWay},
    leases::Leases,
    partition::{GivenUp, Revocations},
    view::InputView,
};
use crate::{
    engine::{
        account::report::InputReport,
        config::Finish,
        control::change::{ChangeError, PortKind, known},
        process::origin::{NO_ASSIGNMENT, Origin},
    },
    router::Matcher,
    source::{Place, Source},
};

/// All inputs, by their places.
pub(crate) struct Inputs {
    all: RwLock<Vec<Arc<Input>>>,
    /// Taken before `all`, where both are.
    door: Mutex<InputRoster>,
    /// Told when one was added.
    arrived: Notify,
    /// Inputs that may still give events.
    reading: Arc<AtomicUsize>,
    /// Partitions that were taken away from them.
    pub(crate) revocations: Arc<Revocations>,
    /// The events that a stop waits for. `None`: those in hand for inputs that keep positions, and
    /// all that were taken for the others.
    finish: Option<Finish>,
    /// A stop came.
    is_stopping: AtomicBool,
    /// The leases of their partitions.
    pub(crate) leases: Leases,
}

struct InputRoster {
    open: bool,
    /// Added, and not yet seen by the run.
    arrivals: Vec<Arrival>,
}

/// An input that is to be read.
pub(crate) struct Arrival {
    pub(crate) place: u32,
    pub(crate) source: Box<dyn Source>,
    /// Which events it gives; the others are acknowledged. `None`: all of them.
    pub(crate) takes: Option<Matcher>,
    pub(crate) reading: StillReading,
    pub(crate) under_way: UnderWay,
}

impl Inputs {
    pub(crate) fn new(finish: Option<Finish>) -> Self {
        Self {
            all: RwLock::default(),
            door: Mutex::new(InputRoster { open: true, arrivals: Vec::new() }),
            arrived: Notify::new(),
            reading: Arc::default(),
            revocations: Arc::default(),
            finish,
            is_stopping: AtomicBool::new(false),
            leases: Leases::default(),
        }
    }

    /// Assigns a slot to events that are not read from a source, and returns it.
    pub(crate) fn add_without_source(&self, label: &str) -> u32 {
        let mut all = self.all.write();
        let partitions = Partitions::new(InputConfig::default(), false, &self.revocations);
        all.push(Input::new(label.to_owned(), Arc::from(label), None, partitions));
        all.len() as u32 - 1
    }

    /// A name that none has yet: this one, or this one with a number.
    pub(crate) fn free_name(&self, like: String) -> String {
        let taken = |name: &str| self.all.read().iter().any(|input| *input.name == *name);
        let numbered = (2_u32..).map(|number| format!("{like} ({number})"));
        let mut names = std::iter::once(like.clone()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or(like)
    }

    /// Adds an input, which the run begins to read.
    ///
    /// # Errors
    /// Why not, and the source.
    pub(crate) fn add(
        &self,
        name: &str,
        config: impl Into<InputConfig>,
        source: Box<dyn Source>,
    ) -> Result<(), (ChangeError, Box<dyn Source>)> {
        let label = Arc::from(source.describe());
        let mut door = self.door.lock();
        if !door.open {
            return Err((ChangeError::Ending, source));
        }
        let mut all = self.all.write();
        if let Err(why) = self.is_free(&all, name) {
            return Err((why, source));
        }
        let config: InputConfig = config.into();
        let takes = (!config.matcher.is_any()).then(|| config.matcher.clone());
        let partitions = Partitions::new(config, source.is_partitioned(), &self.revocations);
        let (place, input) =
            (all.len() as u32, Input::new(name.to_owned(), label, Some(&*source), partitions));
        if let Some(lease) = input.lease() {
            self.leases.add(lease);
        }
        all.push(input.clone());
        self.reading.fetch_add(1, Ordering::AcqRel);
        let under_way = UnderWay::new(&input);
        let reading = StillReading { input, all: self.reading.clone() };
        door.arrivals.push(Arrival { place, source, takes, reading, under_way });
        drop((all, door));
        self.arrived.notify_one();
        Ok(())
    }

    fn is_free(&self, all: &[Arc<Input>], name: &str) -> Result<(), ChangeError> {
        PortKind::Input.usable(name)?;
        let other = all.iter().rev().find(|input| *input.name == *name);
        match other {
            Some(other) if !other.is_removed() => Err(PortKind::Input.name_taken(name, false)),
            Some(other) if !other.is_gone() => Err(PortKind::Input.name_taken(name, true)),
            _ => Ok(()),
        }
    }

    /// Tells an input to stop.
    ///
    /// # Errors
    /// There is none of this name, or the run is ending.
    pub(crate) fn remove(&self, name: &str) -> Result<Arc<Input>, ChangeError> {
        if !self.door.lock().open {
            return Err(ChangeError::Ending);
        }
        let input = self.named(name)?;
        input.fate.lock().removed = true;
        input.stop.remove();
        Ok(input)
    }

    /// The input of this name that is not removed.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<Input>, ChangeError> {
        let all = self.all.read();
        let there = all.iter().filter(|input| input.has_source && !input.is_removed());
        let found = there.clone().find(|input| *input.name == *name).cloned();
        found.ok_or_else(|| PortKind::Input.unknown(name, known(there.map(|input| &*input.name))))
    }

    /// Those that were added since the last call.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.door.lock().arrivals)
    }

    /// Waits until one was added.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// None is added any more, unless one just was: then false.
    pub(crate) fn close_if_none_arrived(&self) -> bool {
        let mut door = self.door.lock();
        door.open = door.open && !door.arrivals.is_empty();
        !door.open
    }

    /// No more are added. Arrivals that were not begun are dropped.
    pub(crate) fn close(&self) {
        let arrivals = {
            let mut door = self.door.lock();
            door.open = false;
            std::mem::take(&mut door.arrivals)
        };
        drop(arrivals);
    }

    /// A stop came: events that it does not wait for are not started any more.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        let all = self.all.read();
        let mut read = all.iter().filter(|input| input.has_source).peekable();
        // A dead letter that is handled again stays marked in its store. Callers of a router wait.
        if self.finish != Some(Finish::All) && read.peek().is_some() {
            self.revocations.add(NO_ASSIGNMENT, GivenUp::GivenBack);
        }
        read.for_each(|input| input.stops(self.finish));
    }

    /// True if all that is left under way is delivered again, and a stop need not wait for it.
    pub(crate) fn gives_back_all(&self) -> bool {
        let is_back = |input: &Arc<Input>| input.is_done() || input.delivers_again();
        let all = self.all.read();
        let stops = self.is_stopping.load(Ordering::Acquire) && self.finish != Some(Finish::All);
        stops && all.iter().all(is_back)
    }

    /// The run is over, so events that are not settled or stored by now are not waited for.
    pub(crate) fn let_go(&self) {
        self.all.read().iter().for_each(|input| input.let_go());
    }

    /// How many may still give events.
    pub(crate) fn reading(&self) -> usize {
        self.reading.load(Ordering::Acquire)
    }

    /// True if other events may come after this one and succeed or fail. A stop does not end an
    /// input that continues with the next run, nor a replay.
    pub(crate) fn others_may_come(&self, origin: &Origin) -> bool {
        let goes_on = || origin.partition().is_none() || self.read_from(origin).delivers_again();
        self.reading() > 0 || (self.is_stopping.load(Ordering::Acquire) && goes_on())
    }

    pub(crate) fn get(&self, place: u32) -> Arc<Input> {
        self.all.read()[place as usize].clone()
    }

    /// The input that an event was read from; for a loopback event, that of the event it was made
    /// of.
    pub(crate) fn read_from(&self, origin: &Origin) -> Arc<Input> {
        let all = self.all.read();
        let gave = |assigned| all.iter().find(|input| input.partitions.has(assigned));
        origin.partition().and_then(gave).unwrap_or(&all[origin.input as usize]).clone()
    }

    /// The configured name of the input in this slot.
    pub(crate) fn name(&self, place: u32) -> Arc<str> {
        self.all.read()[place as usize].name.clone()
    }

    /// The source of the input in this slot.
    pub(crate) fn label(&self, place: u32) -> Arc<str> {
        self.all.read()[place as usize].label.clone()
    }

    /// The source of this event within its input, and the position in it.
    pub(crate) fn place(&self, origin: &Origin) -> Place {
        self.all.read()[origin.input as usize].place(origin.assigned, origin.position)
    }

    /// The configured names, by slot.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.all.read().iter().map(|input| input.name()).collect()
    }

    /// The part that has been read of each present input, in millionths, or more if that is not
    /// known.
    pub(crate) fn read(&self) -> Vec<u64> {
        let all = self.all.read();
        let there = all.iter().filter(|input| input.has_source && !input.is_removed());
        there.map(|input| input.part_read()).collect()
    }

    /// Bytes that are there and were not read, of inputs that know no end.
    pub(crate) fn behind(&self) -> Option<u64> {
        let all = self.all.read();
        let there = all.iter().filter(|input| input.is_read() && !input.is_removed());
        there.filter_map(|input| input.behind()).reduce(|all, one| all.saturating_add(one))
    }

    /// The state of each present input that has a source.
    pub(crate) fn views(&self) -> Vec<InputView> {
        let all = self.all.read();
        let there = all.iter().filter(|input| input.has_source && !input.is_removed());
        there.map(|input| input.view()).collect()
    }

    /// True if none is read further until something is settled. The loopback does not count, nor
    /// does an input that has ended.
    pub(crate) fn all_stand(&self) -> bool {
        let all = self.all.read();
        all.iter().all(|input| !input.is_read() || input.partitions.stand())
    }

    pub(crate) fn names_of_those_that_stand(&self) -> Vec<String> {
        let all = self.all.read();
        let stand = all.iter().filter(|input| input.is_read() && input.partitions.stand());
        stand.map(|input| format!("the input {:?}", input.name)).collect()
    }

    /// True if the end of each that is read is known.
    pub(crate) fn all_are_finite(&self) -> bool {
        let all = self.all.read();
        let known = |input: &Arc<Input>| input.part_read() <= 1_000_000;
        all.iter().all(|input| !input.is_read() || known(input))
    }

    /// Events that were taken and that no pool has yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.all.read().iter().map(|input| input.partitions.waiting()).sum()
    }

    /// This many events of each, by slot, wait behind parked keys.
    pub(crate) fn hold_parked(&self, events: &[u64]) {
        for (place, input) in self.all.read().iter().enumerate() {
            let events = events.get(place).copied().unwrap_or_default();
            input.partitions.hold_parked(events);
        }
    }

    /// The most bytes that one of them had in flight, including removed ones.
    pub(crate) fn peak_in_flight(&self) -> u64 {
        let all = self.all.read();
        let peaks = all.iter().map(|input| input.partitions.sum().most_in_flight_bytes);
        peaks.max().unwrap_or_default()
    }

    /// A row for each that has, or had, a source.
    pub(crate) fn report(&self) -> Vec<InputReport> {
        let all = self.all.read();
        all.iter().filter(|input| input.has_source).map(|input| input.report()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generator::{GeneratorOptions, GeneratorSource};

    fn source() -> Box<dyn Source> {
        Box::new(GeneratorSource::new(GeneratorOptions::default()).unwrap())
    }

    fn add(inputs: &Inputs, name: &str) -> Result<(), ChangeError> {
        inputs.add(name, Matcher::any(), source()).map_err(|(why, _)| why)
    }

    #[test]
    fn g01_a_name_is_free_again_once_all_that_its_input_gave_is_settled() {
        let inputs = Inputs::new(None);
        add(&inputs, "a").unwrap();
        let taken =
            |leaving| ChangeError::NameTaken { kind: "input", name: "a".to_owned(), leaving };
        assert_eq!(add(&inputs, "a"), Err(taken(false)));
        let batch = UnderWay::new(&inputs.remove("a").unwrap());
        drop(inputs.arrivals());
        assert_eq!(add(&inputs, "a"), Err(taken(true)), "an event of it is not settled");
        drop(batch);
        add(&inputs, "a").unwrap();
        assert_eq!(inputs.arrivals()[0].place, 1, "another place: its events are told apart");
        assert_eq!(inputs.report().iter().filter(|row| row.removed).count(), 1);
    }

    #[test]
    fn g06_none_is_added_after_the_last_has_ended_and_one_that_was_just_added_is_read() {
        let inputs = Inputs::new(None);
        add(&inputs, "a").unwrap();
        assert_eq!(inputs.reading(), 1);
        assert!(!inputs.close_if_none_arrived(), "it has not been begun");
        drop(inputs.arrivals());
        assert_eq!(inputs.reading(), 0);
        assert!(inputs.close_if_none_arrived());
        assert_eq!(add(&inputs, "b"), Err(ChangeError::Ending));
        assert!(matches!(inputs.remove("a"), Err(ChangeError::Ending)));
    }

    #[test]
    fn names_that_nobody_gave_differ() {
        let inputs = Inputs::new(None);
        let first = inputs.free_name("script".to_owned());
        add(&inputs, &first).unwrap();
        assert_eq!((&*first, &*inputs.free_name("script".to_owned())), ("script", "script (2)"));
    }
}
