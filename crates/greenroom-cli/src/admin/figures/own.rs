//! Figures of the program beyond its engine: events that layers held back, answers of `http`
//! inputs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use greenroom_bus::{
    engine::Control,
    metrics::{Families, Metric, Unit},
};
use parking_lot::Mutex;

#[cfg(test)]
use crate::telemetry::counts;
use crate::{
    admin::advice::{self, Finding, Seen},
    report::Answers,
    run::{layers::HandlerLayers, reload::Reload},
    telemetry::counts::SignalCounts,
};

const BUILD: Metric =
    Metric::gauge("greenroom_build_info", &["version"], "1, with the version of greenroom.");
const DUPLICATES: Metric = Metric::counter(
    "greenroom_duplicates_suppressed_total",
    &["handler"],
    "Events that were acknowledged unhandled because they had been handled before.",
);
const ANSWERS: Metric = Metric::counter(
    "greenroom_input_answers_total",
    &["input", "status"],
    "Requests that an `http` input has answered, by status; kept when the input is removed.",
);

/// Every metric of its own.
#[cfg(test)]
pub(super) const METRICS: &[&Metric] =
    &[&BUILD, &DUPLICATES, &ANSWERS, &FINDING, &counts::EXPORTED, &counts::DROPPED];

const FINDING: Metric = Metric::gauge(
    "greenroom_finding_seconds",
    &["kind", "severity", "about"],
    "How long a finding of `GET /api/advice` and `/healthz` has existed, or 0 if that is \
     unknown; no series while it does not exist. `kind` stays the same in later versions.",
)
.with_unit(Unit::Seconds);

/// Current findings, and since when.
pub(super) fn add_advice(families: &mut Families, seen: &Seen) {
    let found = advice::findings(seen);
    let mut longest = BTreeMap::<_, Duration>::new();
    for Finding { kind, severity, about, lasted, .. } in &found {
        let known = longest.entry((*kind, severity.word(), &**about)).or_default();
        *known = lasted.unwrap_or_default().max(*known);
    }
    for ((kind, severity, about), lasted) in longest {
        families.add(&FINDING, &[kind, severity, about], lasted);
    }
}

/// Figures of the program beyond its engine.
pub(super) struct Own {
    control: Control,
    reload: Arc<Reload>,
    layers: Arc<HandlerLayers>,
    exported: Option<Arc<SignalCounts>>,
    /// The counts of inputs that come and go.
    kept: Mutex<Kept>,
}

impl Own {
    pub(super) fn new(
        control: Control,
        reload: Arc<Reload>,
        layers: Arc<HandlerLayers>,
        exported: Option<Arc<SignalCounts>>,
    ) -> Self {
        Self { control, reload, layers, exported, kept: Mutex::default() }
    }

    /// Reads the answers of `http` inputs.
    pub(super) fn look(&self) {
        let inputs = self.control.input_views().into_iter();
        let answers = inputs.filter_map(|view| Some((self.reload.answers(&view.name)?, view.name)));
        let mut kept = self.kept.lock();
        answers.for_each(|(answers, input)| kept.look(&input, answers));
    }

    pub(super) fn add(&self, families: &mut Families) {
        families.add(&BUILD, &[env!("CARGO_PKG_VERSION")], true);
        for (handler, events) in self.layers.skipped() {
            families.add(&DUPLICATES, &[handler], events);
        }
        if let Some(exported) = &self.exported {
            exported.add(families);
        }
        self.look();
        for ((input, status), count) in &self.kept.lock().answers {
            families.add(&ANSWERS, &[input, &status.to_string()], count.sum());
        }
    }
}

/// Answers by input and status, summed over all inputs that had the same name.
#[derive(Default)]
struct Kept {
    answers: BTreeMap<(String, u16), OwnCount>,
}

impl Kept {
    fn look(&mut self, input: &str, answers: Answers) {
        for (status, count) in answers {
            self.answers.entry((input.to_owned(), status)).or_default().look(count);
        }
    }
}

/// A counter that may restart at zero.
#[derive(Default)]
struct OwnCount {
    before: u64,
    now: u64,
}

impl OwnCount {
    fn look(&mut self, now: u64) {
        if now < self.now {
            self.before += self.now;
        }
        self.now = now;
    }

    fn sum(&self) -> u64 {
        self.before + self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o02_what_an_input_has_answered_stays_when_another_takes_its_name() {
        let mut kept = Kept::default();
        let mut sum = |answers: Answers| {
            kept.look("orders", answers);
            kept.answers[&("orders".to_owned(), 202)].sum()
        };
        let sums = [
            sum(vec![(202, 5), (429, 1)]),
            sum(vec![(202, 9)]),
            sum(vec![]),
            sum(vec![(202, 2)]),
            sum(vec![(202, 3)]),
        ];
        assert_eq!(sums, [5, 9, 9, 11, 12]);
        assert_eq!(kept.answers[&("orders".to_owned(), 429)].sum(), 1);
    }
}
