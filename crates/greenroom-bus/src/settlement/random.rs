//! Random programs against a naive model of a settlement: a list of parts and their outcomes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use proptest::prelude::*;

use super::*;

/// An action on one of the open parts; the number selects it, modulo their count.
#[derive(Debug, Clone, Copy)]
enum Step {
    Child(usize),
    SetOutcome(usize, Outcome),
    Confirm(usize),
    Refuse(usize, Refusal),
    Drop(usize),
    /// Its holder panics.
    Panic(usize),
    /// A listener is added. If the flag is set, it panics when it is called.
    Watch(usize, bool),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![Outcome::Handled, Outcome::DeadLettered, Outcome::Ignored])
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop::sample::select(vec![
        Refusal::Dropped,
        Refusal::NoHandler,
        Refusal::PoolFull,
        Refusal::NotStored,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let part = 0..16_usize;
    prop_oneof![
        4 => part.clone().prop_map(Step::Child),
        1 => (part.clone(), outcome()).prop_map(|(part, outcome)| Step::SetOutcome(part, outcome)),
        4 => part.clone().prop_map(Step::Confirm),
        1 => (part.clone(), refusal()).prop_map(|(part, why)| Step::Refuse(part, why)),
        1 => part.clone().prop_map(Step::Drop),
        1 => part.clone().prop_map(Step::Panic),
        1 => (part, any::<bool>()).prop_map(|(part, panics)| Step::Watch(part, panics)),
    ]
}

/// The expected behaviour of a settlement, without regard to cost.
#[derive(Debug, Default)]
struct Naive {
    open: usize,
    outcomes: Vec<Outcome>,
    refusals: Vec<Refusal>,
    watchers: usize,
}

impl Naive {
    fn expected(&self) -> Settled {
        match self.refusals.iter().max() {
            Some(why) => Settled::Refused(*why),
            None => {
                let said = self.outcomes.iter().max_by_key(|outcome| **outcome as u8);
                Settled::Acknowledged(said.copied().unwrap_or(Outcome::Handled))
            }
        }
    }
}

/// Records its calls, in order; as a source, it panics on request.
#[derive(Clone, Default)]
struct Listener {
    told: Arc<Mutex<Vec<Settled>>>,
    panics: bool,
}

impl Settle for Listener {
    fn settled(&self, how: Settled) {
        self.told.lock().unwrap().push(how);
        assert!(!self.panics, "as it was asked to");
    }
}

fn take(step: Step, parts: &mut Vec<Ack>, naive: &mut Naive, watchers: &Listener) {
    let at = |part: usize| part % parts.len();
    match step {
        Step::Child(part) => {
            let child = parts[at(part)].child();
            parts.push(child);
            naive.open += 1;
        }
        Step::SetOutcome(part, outcome) => {
            parts[at(part)].set_outcome(outcome);
            naive.outcomes.push(outcome);
        }
        Step::Watch(part, panics) => {
            let watcher = Listener { panics, ..watchers.clone() };
            assert!(parts[at(part)].watch().when_settled(move |how| watcher.settled(how)));
            naive.watchers += 1;
        }
        Step::Confirm(part) => {
            naive.open -= 1;
            parts.remove(at(part)).confirm();
        }
        Step::Refuse(part, why) => {
            naive.open -= 1;
            naive.refusals.push(why);
            parts.remove(at(part)).refuse(why);
        }
        Step::Drop(part) => {
            naive.open -= 1;
            naive.refusals.push(Refusal::Dropped);
            drop(parts.remove(at(part)));
        }
        Step::Panic(part) => {
            naive.open -= 1;
            naive.refusals.push(Refusal::Dropped);
            let held = parts.remove(at(part));
            let caught = catch_unwind(AssertUnwindSafe(move || {
                let _held = held;
                std::panic::resume_unwind(Box::new("the holder"));
            }));
            assert!(caught.is_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn m03_random_programs_fire_once_with_what_the_naive_settlement_says(
        steps in prop::collection::vec(step(), 0..40),
        panics in prop::bool::weighted(0.05),
    ) {
        let (source, watchers) = (Listener { panics, ..Listener::default() }, Listener::default());
        let mut parts = vec![Ack::new(source.clone())];
        let mut naive = Naive { open: 1, ..Naive::default() };
        for step in steps.into_iter().chain(std::iter::repeat_n(Step::Confirm(0), 64)) {
            if parts.is_empty() {
                break;
            }
            take(step, &mut parts, &mut naive, &watchers);
            prop_assert_eq!(source.told.lock().unwrap().len(), usize::from(naive.open == 0));
        }
        prop_assert_eq!(naive.open, 0);
        prop_assert_eq!(&*source.told.lock().unwrap(), &[naive.expected()]);
        let told = watchers.told.lock().unwrap();
        prop_assert_eq!(&*told, &vec![naive.expected(); naive.watchers]);
    }
}
