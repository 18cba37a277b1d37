//! The result of a run on a stage.

use std::{fmt::Write, mem};

use greenroom_bus::{
    dead_letter::DeadLetter,
    engine::{LedgerView, RunReport},
    event::Event,
    settlement::{Refusal, Settled},
};

use super::{
    letters::StageLetters,
    sink::StageSink,
    watch::{SeenAttempt, Watch},
};
use crate::partitioned::Broker;

/// Lines of a message at most: the first say most.
const SHOWN: usize = 10;

/// The result of a run on a [`Stage`](super::Stage), which
/// [`assert_settled!`](crate::assert_settled) and [`assert_order!`](crate::assert_order) look at.
#[derive(Debug)]
pub struct StageRun {
    report: RunReport,
    ledger: LedgerView,
    seed: Option<u64>,
    outputs: Vec<Event>,
    letters: Vec<DeadLetter>,
    attempts: Vec<SeenAttempt>,
    unsettled: Vec<String>,
    disorder: Vec<String>,
}

impl StageRun {
    pub(super) fn new(
        (report, ledger): (RunReport, LedgerView),
        seed: Option<u64>,
        broker: &Broker,
        watch: &Watch,
        sink: &StageSink,
        letters: &StageLetters,
    ) -> Self {
        Self {
            unsettled: unsettled(&report, broker),
            disorder: watch.disorder(),
            outputs: mem::take(&mut *sink.events.lock()),
            letters: mem::take(&mut *letters.0.lock()),
            attempts: watch.attempts(),
            report,
            ledger,
            seed,
        }
    }

    /// The report of the engine.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// The figures of the engine at its end.
    pub fn ledger(&self) -> &LedgerView {
        &self.ledger
    }

    /// The results that went to no output of your own, in the order in which they were stored. With
    /// chaos, an event that was handled twice has its results twice.
    pub fn outputs(&self) -> &[Event] {
        &self.outputs
    }

    /// The dead letters.
    pub fn letters(&self) -> &[DeadLetter] {
        &self.letters
    }

    /// Every attempt, in the order in which they began.
    pub fn attempts(&self) -> &[SeenAttempt] {
        &self.attempts
    }

    /// Whether every event was settled, as [`assert_settled!`](crate::assert_settled) says.
    ///
    /// # Errors
    /// The events that were not, and the seed.
    pub fn check_settled(&self) -> Result<(), String> {
        self.check("not everything was settled", &self.unsettled)
    }

    /// Whether the order of each key was kept, as [`assert_order!`](crate::assert_order) says.
    ///
    /// # Errors
    /// Where it was not, and the seed.
    pub fn check_order(&self) -> Result<(), String> {
        self.check("the order was not kept", &self.disorder)
    }

    fn check(&self, what: &str, found: &[String]) -> Result<(), String> {
        if found.is_empty() {
            return Ok(());
        }
        let mut text = format!("{what}:");
        // Writing into a String cannot fail.
        for line in found.iter().take(SHOWN) {
            let _ = write!(text, "\n  {line}");
        }
        if let Some(more @ 1..) = found.len().checked_sub(SHOWN) {
            let _ = write!(text, "\n  and {more} more");
        }
        if let Some(seed) = self.seed {
            let _ = write!(
                text,
                "\nseed {seed}: `.chaos({seed})` repeats it; with \
                 `.chaos(greenroom_test::seed())`, GREENROOM_SEED={seed}"
            );
        }
        Err(text)
    }
}

fn unsettled(report: &RunReport, broker: &Broker) -> Vec<String> {
    let mut found = broker.misuse();
    for partition in broker.partitions() {
        let (undone, committed) = (broker.undone(partition), broker.committed(partition));
        let refused = broker.settled(partition);
        let refusal = |position: u64| {
            let of = refused.iter().rev().filter(|(at, _)| *at == position);
            of.map(|(_, how)| *how).find(|how| *how != Settled::Refused(Refusal::Revoked))
        };
        for position in &undone {
            let how = match refusal(*position) {
                Some(Settled::Refused(why)) => format!("was refused ({why})"),
                _ => "was never acknowledged".to_owned(),
            };
            found.push(format!("position {position} of partition {partition} {how}"));
            if committed.is_done(*position) {
                found.push(format!("a commit covers position {position} of {partition}"));
            }
        }
        if let open @ 1.. = broker.open(partition) {
            found.push(format!("{open} deliveries of partition {partition} are open"));
        }
    }
    if !report.adds_up() {
        found.push(format!("the report does not add up: {report:?}"));
    }
    if report.out_of_order > 0 {
        found.push(format!("{} events were out of order", report.out_of_order));
    }
    found.extend(report.errors.iter().cloned());
    found
}
