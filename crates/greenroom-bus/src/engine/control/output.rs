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
    router::Matcher,
    sink::Sink,
};

impl Control {
    /// Sends what handlers produce, what `on` covers, and the matcher takes, here: where no output before this one does, unless
    /// the engine uses [all](crate::engine::EngineBuilder::all_outputs) of them. Holds for what a handler is done with from now
    /// on.
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
        self.add(None, Output::new(name.to_owned(), on, matcher, sink))
    }

    /// As [`add_output`](Self::add_output), so that it is asked before another one.
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
        self.add(Some(before), Output::new(name.to_owned(), on, matcher, sink))
    }

    fn add(&self, before: Option<&str>, output: Output) -> Result<(), NotAdded<Arc<dyn Sink>>> {
        let sink = output.sink.clone();
        let added = match self.phase() {
            Phase::Run => self.shared.egress.outputs.add(output, before),
            _ => Err(ChangeError::Ending),
        };
        added.map_err(|why| NotAdded::new(why, sink))
    }

    /// Hands nothing more to this output. What a worker is handing to it is waited for, and all that it accepted is stored; what
    /// is returned is done then, says what could not be stored, and the name is free. What handlers produce from now on goes to
    /// the next output that takes it, or nowhere where there is none: so who replaces an output adds the new one first.
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

    /// Has outputs and dead letters look whether their files are still in their places, and open
    /// anew those that are not: after files were rotated. Without this they find out before they
    /// confirm anything more. Never waits.
    pub fn reopen_outputs(&self) {
        for output in &*self.shared.egress.outputs.list() {
            output.sink.reopen();
        }
        self.shared.egress.dead_letters.store.reopen();
    }

    /// The outputs that there are and were, in the order in which they were added.
    pub fn outputs(&self) -> Vec<OutputReport> {
        self.shared.egress.outputs.report()
    }
}
