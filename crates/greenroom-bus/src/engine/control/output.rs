//! Outputs that come and go while the engine runs (G01).

use std::sync::Arc;

use super::{
    change::ChangeError,
    handle::Control,
    removal::{NotAdded, Removal},
};
use crate::{
    engine::{account::report::OutputReport, egress::outputs::Output, lifecycle::phase::Phase},
    pattern::Pattern,
    router::{Interest, Matcher},
    sink::{Sink, Trouble},
};

/// The state of an output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputView {
    /// Its name.
    pub name: String,
    /// Its target, for example `file:done.ndjson`.
    pub target: String,
    /// The event types that it takes.
    pub on: Vec<Pattern>,
    /// Events handed to it.
    pub events: u64,
    /// Of these, the ones that it rejected for good.
    pub rejected: u64,
    /// Why it makes no progress at present, if so.
    pub trouble: Option<Trouble>,
    /// Why it cannot store any more, if so.
    pub failure: Option<String>,
    /// True if it was [removed](Control::remove_output), and is not done.
    pub removed: bool,
    /// How many workers of which pools wait for room in it.
    pub waiting: Vec<(String, u64)>,
}

impl OutputView {
    fn new(output: &Output) -> Self {
        let report = output.report();
        Self {
            name: report.name,
            target: report.target,
            on: output.interest.on.clone(),
            events: report.events,
            rejected: report.rejected,
            trouble: output.sink.trouble(),
            failure: output.sink.failure().map(|failure| failure.to_string()),
            removed: report.removed,
            waiting: output.waiting(),
        }
    }
}

impl Control {
    /// Sends to this sink the results of handlers that `on` covers and the matcher takes, if no
    /// earlier output takes them or if the engine uses [all
    /// outputs](crate::engine::EngineBuilder::all_outputs). Applies to results from now on.
    ///
    /// # Errors
    /// The name is taken, or empty; or the engine is ending. The sink is given back.
    pub fn add_output(
        &self,
        name: &str,
        on: Vec<Pattern>,
        matcher: Matcher,
        sink: Arc<dyn Sink>,
    ) -> Result<(), NotAdded<Arc<dyn Sink>>> {
        self.add(None, Output::new(name.to_owned(), Interest { on, matcher }, sink))
    }

    /// Like [`add_output`](Self::add_output), in a place before another output.
    ///
    /// # Errors
    /// As there; or there is no other of that name.
    pub fn add_output_before(
        &self,
        before: &str,
        name: &str,
        on: Vec<Pattern>,
        matcher: Matcher,
        sink: Arc<dyn Sink>,
    ) -> Result<(), NotAdded<Arc<dyn Sink>>> {
        self.add(Some(before), Output::new(name.to_owned(), Interest { on, matcher }, sink))
    }

    fn add(&self, before: Option<&str>, output: Output) -> Result<(), NotAdded<Arc<dyn Sink>>> {
        let sink = output.sink.clone();
        let added = match self.phase() {
            Phase::Run => self.shared.egress.outputs.add(output, before),
            _ => Err(ChangeError::Ending),
        };
        added.map_err(|why| NotAdded::new(why, sink))
    }

    /// Sends nothing more to this output. The returned removal is done when all accepted events are
    /// stored; it then reports those that could not be, and the name is free. Results of handlers
    /// from now on, and events that wait for room in it, go to the next output that takes them, or
    /// are dropped if there is none. To replace an output, add the new one first.
    ///
    /// A removal whose output is stuck ends once the output makes progress:
    /// [`resume_output`](Self::resume_output) also works on removed ones.
    ///
    /// # Errors
    /// There is no such output, or the engine is ending.
    pub fn remove_output(&self, name: &str) -> Result<Removal<OutputReport>, ChangeError> {
        if self.phase() != Phase::Run {
            return Err(ChangeError::Ending);
        }
        let (output, ended) = self.shared.egress.outputs.remove(name)?;
        Ok(Removal::new(async move {
            let nobody = "the run was given up before its sink had ended".to_owned();
            let given_up = ended.await.is_err();
            let mut report = output.report();
            if given_up {
                report.error.get_or_insert(nobody);
            }
            report
        }))
    }

    /// Makes outputs and dead letters check whether their files are still in place, and reopen
    /// those that are not, after a log rotation. Otherwise they notice before they confirm the next
    /// event. Never waits.
    pub fn reopen_outputs(&self) {
        for output in &*self.shared.egress.outputs.list() {
            output.sink.reopen();
        }
        self.shared.egress.dead_letters.store.reopen();
    }

    /// The states of the present outputs, in the order in which they are tried; then those that
    /// were removed, and are not done.
    pub fn output_views(&self) -> Vec<OutputView> {
        self.shared.egress.outputs.at_work().iter().map(|output| OutputView::new(output)).collect()
    }

    /// Declares the cause that [paused](crate::sink::Trouble::paused) this output as corrected: it
    /// tries again at once. Returns false if it is not paused.
    ///
    /// # Errors
    /// There is no such output.
    pub fn resume_output(&self, name: &str) -> Result<bool, ChangeError> {
        self.shared.egress.outputs.find(name).map(|output| output.sink.resume())
    }

    /// The outputs that there are and were, in the order in which they were added.
    pub fn outputs(&self) -> Vec<OutputReport> {
        self.shared.egress.outputs.report()
    }
}
