//! Carries the changes of a program out, and waits for what was removed.

use std::sync::{Arc, atomic::AtomicU64};

use greenroom::{Backoff, limits::Rate, shares::ShareLimits};
use greenroom_bus::{
    engine::{ChangeError, Control, InputReport, OutputReport, PoolSharesControl, Removal, Retry},
    router::Matcher,
};

use super::{
    program::{Change, HANDLERS, Program},
    script,
};
use crate::engine::{
    positions::{Keeping, Kept},
    support::{HANG, ms, sink::MemorySink},
};

/// What the changes of one run came to.
pub(super) struct Changed {
    /// How many items each late input has given, in the order of their places.
    pub(super) given: Vec<Arc<AtomicU64>>,
    /// The positions of each.
    pub(super) kept: Vec<Kept>,
    /// Every output that there was, with its name.
    pub(super) sinks: Vec<(String, Arc<MemorySink>)>,
    pub(super) inputs: Vec<InputReport>,
    pub(super) outputs: Vec<OutputReport>,
    /// True where an input was removed.
    pub(super) removed: bool,
}

/// One run that is changed.
pub(super) struct Changes {
    control: Control,
    /// Of the inputs and outputs that there are.
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// The place of the next input.
    next: usize,
    given: Vec<Arc<AtomicU64>>,
    kept: Vec<Kept>,
    sinks: Vec<(String, Arc<MemorySink>)>,
    leaving: (Vec<Removal<InputReport>>, Vec<Removal<OutputReport>>),
}

pub(super) fn input_name(place: usize, late: bool) -> String {
    // Two names for all that are late: so that one comes again.
    if late { format!("late-{}", place % 2) } else { format!("first-{place}") }
}

/// Only what was removed, or is ending, may be refused: everything else that a
/// program does is possible.
fn expected(why: &ChangeError) {
    let expected = matches!(
        why,
        ChangeError::Ending
            | ChangeError::Refused { .. }
            | ChangeError::NoSuchEnd { .. }
            | ChangeError::NameTaken { .. }
    );
    assert!(expected, "{why}");
}

/// No share of this pool is paused, or has a cap of 0.
fn start_all(shares: &PoolSharesControl) -> Result<(), ChangeError> {
    let is_shut = |limits: ShareLimits| limits.most_in_hand() == Some(0);
    for status in shares.list() {
        let name = status.share.to_string();
        shares.resume(&name);
        if status.is_set && is_shut(status.limits) {
            shares.set(&name, status.limits.in_hand(1))?;
        }
    }
    let defaults = shares.defaults();
    if is_shut(defaults) {
        shares.configure(defaults.in_hand(1), [].into())?;
    }
    Ok(())
}

impl Changes {
    pub(super) fn new(control: Control, program: &Program, first: Arc<MemorySink>) -> Self {
        let there = program.inputs.iter().filter(|input| !input.late).count();
        Self {
            control,
            inputs: (0..there).map(|place| input_name(place, false)).collect(),
            outputs: vec!["out".to_owned()],
            next: there,
            given: Vec::new(),
            kept: Vec::new(),
            sinks: vec![("out".to_owned(), first)],
            leaving: (Vec::new(), Vec::new()),
        }
    }

    /// In the end nothing is paused and no cap is 0, so that the run can end.
    pub(super) async fn carry_out(mut self, program: &Program) -> Self {
        for (wait, change) in &program.changes {
            if *wait > 0 {
                tokio::time::sleep(ms(*wait)).await;
            } else {
                tokio::task::yield_now().await;
            }
            if let Err(why) = self.change(program, *change) {
                expected(&why);
            }
        }
        tokio::time::sleep(ms(program.caps_end)).await;
        for pool in self.control.pools() {
            pool.resume();
            if let Some(shares) = pool.shares() {
                start_all(&shares).unwrap_or_else(|why| expected(&why));
            }
        }
        for handler in self.control.handlers() {
            handler.resume();
        }
        self
    }

    fn change(&mut self, program: &Program, change: Change) -> Result<(), ChangeError> {
        let pool = |place: usize| self.control.pool(&format!("pool-{place}"));
        let handler = |place: usize| self.control.handler(HANDLERS[place].0);
        match change {
            Change::Workers(at, workers) => drop(pool(at)?.resize(workers)?),
            Change::Queue(at, events) => pool(at)?.set_queue(events)?,
            Change::Rate(at, rate) => pool(at)?.set_rate(rate.map(Rate::per_second))?,
            Change::Limit(at, events) => pool(at)?.set_concurrency(events)?,
            Change::Attempts(at, attempts) => {
                let backoff = Backoff::new(ms(10), ms(100));
                handler(at)?.set_retry(Retry { attempts, backoff, total: None })?;
            }
            Change::PausePool(at) => {
                pool(at)?.pause();
            }
            Change::ResumePool(at) => {
                pool(at)?.resume();
            }
            Change::PauseHandler(at) => {
                handler(at)?.pause();
            }
            Change::ResumeHandler(at) => {
                handler(at)?.resume();
            }
            Change::ShareQueue(at, events) => pool(at)?.set_share_queue(events),
            Change::Defaults(at, limits) => {
                if let Some(shares) = pool(at)?.shares() {
                    shares.configure(limits, [].into())?;
                }
            }
            Change::Share(at, share, limits) => {
                if let Some(shares) = pool(at)?.shares() {
                    match limits {
                        Some(limits) => shares.set(&share.to_string(), limits)?,
                        None => shares.reset(&share.to_string()),
                    }
                }
            }
            Change::HoldShare(at, share, during) => {
                if let Some(shares) = pool(at)?.shares() {
                    shares.hold(&share.to_string(), ms(during));
                }
            }
            Change::PauseShare(at, share) => {
                if let Some(shares) = pool(at)?.shares() {
                    shares.pause(&share.to_string());
                }
            }
            Change::ResumeShare(at, share) => {
                if let Some(shares) = pool(at)?.shares() {
                    shares.resume(&share.to_string());
                }
            }
            Change::Decide(decision) => {
                for parked in self.control.parked() {
                    self.control.decide(&parked.key, Some(&parked.handler), decision);
                }
            }
            Change::AddInput => return self.add_input(program),
            Change::RemoveInput(at) => {
                if let Some(place) = at.checked_rem(self.inputs.len()) {
                    let name = self.inputs.remove(place);
                    self.leaving.0.push(self.control.remove_input(&name)?);
                }
            }
            Change::AddOutput(first) => return self.add_output(program, first),
            Change::RemoveOutput(at) if self.outputs.len() > 1 => {
                let name = self.outputs.remove(at % self.outputs.len());
                self.leaving.1.push(self.control.remove_output(&name)?);
            }
            Change::RemoveOutput(_) => {}
        }
        Ok(())
    }

    fn add_input(&mut self, program: &Program) -> Result<(), ChangeError> {
        let place = self.next;
        let Some(input) = program.inputs.get(place) else { return Ok(()) };
        let (name, script) = (input_name(place, true), script(input, place));
        let (given, kept) = (script.given(), Kept::new(|_| {}));
        let source = Box::new(Keeping(script, kept.clone()));
        let added = self.control.add_input(&name, Matcher::any(), source);
        added.map_err(|error| error.why)?;
        self.next += 1;
        self.given.push(given);
        self.kept.push(kept);
        self.inputs.push(name);
        Ok(())
    }

    fn add_output(&mut self, program: &Program, first: bool) -> Result<(), ChangeError> {
        let (name, on) = (format!("out-{}", self.sinks.len()), vec!["**".parse().unwrap()]);
        let (sink, any) = (Arc::new(MemorySink::new(program.sink)), Matcher::any());
        let added = match first {
            true => {
                let before = &self.outputs[0];
                self.control.add_output_before(before, &name, on, any, sink.clone())
            }
            false => self.control.add_output(&name, on, any, sink.clone()),
        };
        added.map_err(|error| error.why)?;
        self.outputs.insert(if first { 0 } else { self.outputs.len() }, name.clone());
        self.sinks.push((name, sink));
        Ok(())
    }

    /// The run is over: so is all that was removed.
    pub(super) async fn end(self) -> Changed {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let removed = !self.leaving.0.is_empty();
        let hangs = "what was removed is not done";
        for removal in self.leaving.0 {
            inputs.push(tokio::time::timeout(HANG, removal.done()).await.expect(hangs));
        }
        for removal in self.leaving.1 {
            outputs.push(tokio::time::timeout(HANG, removal.done()).await.expect(hangs));
        }
        Changed { given: self.given, kept: self.kept, sinks: self.sinks, inputs, outputs, removed }
    }
}
