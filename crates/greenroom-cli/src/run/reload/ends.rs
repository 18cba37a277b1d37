//! Inputs and outputs that appear in the file or disappear from it (C09, G01).
//!
//! New parts are added before old ones are removed, so that handled events always have an output,
//! and the run does not end for lack of an input. If a new output cannot be added, none is removed,
//! and no input is added. A part whose name stays but whose settings differ is left alone: a file
//! that is read again, or written by two outputs at once, helps no one. The options of `http`
//! outputs change in place, which is how a paused one continues.

use std::{
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use greenroom_bus::{engine::ChangeError, kind::FileRole, router::Interest, source::file::FileSet};

use super::{
    super::assemble::{self},
    BEFORE_THE_START, Turn,
};
use crate::config::{Config, InputConfig, Kinds, LettersTo, OutputConfig, identity};

/// Why the last input stays.
const NOTHING_TO_READ: &str = "it is gone from the file, but continues: without it no input would be left, and the run would end";

/// How long senders may take for their last answers when an input is removed: longer than its
/// server waits for them.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// The directory of its log, if it has one.
fn store_of(input: &InputConfig) -> Option<PathBuf> {
    let files = input.kind.files();
    let mut logs = files.iter().filter(|file| file.role == FileRole::Log);
    logs.next().map(|log| identity(log.path))
}

/// The files, directories and patterns that it reads.
fn read_by(input: &InputConfig) -> impl Iterator<Item = PathBuf> {
    let files = input.kind.files().into_iter();
    let read = files.filter(|file| matches!(file.role, FileRole::Read { .. }));
    read.map(|file| file.path.to_owned()).collect::<Vec<_>>().into_iter()
}

/// Whether an input reads this file, or would after a restart.
fn reads(input: &InputConfig, file: &Path) -> bool {
    read_by(input).any(|path| match FileSet::find(&path) {
        Ok(Some(set)) => set.takes(file) || set.files().iter().any(|other| identity(other) == file),
        Ok(None) | Err(_) => identity(&path) == file,
    })
}

impl Turn<'_> {
    pub(super) fn ends(&mut self, wanted: &Config) {
        self.add_outputs(&wanted.outputs);
        self.remove_outputs(&wanted.outputs);
        self.outputs_that_stay(&wanted.outputs);
        self.add_inputs(wanted);
        self.remove_inputs(&wanted.inputs);
        self.inputs_that_stay(&wanted.inputs);
    }

    /// From the last to the first, so that the output that each one precedes exists.
    fn add_outputs(&mut self, wanted: &[OutputConfig]) {
        for (place, output) in wanted.iter().enumerate().rev() {
            if self.config.outputs.iter().any(|is| is.name == output.name) {
                continue;
            }
            let next = wanted[place + 1..].iter().find_map(|next| self.place_of_output(&next.name));
            let what = format!("outputs.{}", output.name);
            match self.add_output(output, next) {
                Ok(()) => {
                    let place = next.unwrap_or(self.config.outputs.len());
                    self.config.outputs.insert(place, output.clone());
                    self.changed.push(format!("{what} (added)"));
                }
                Err(why) => self.leave(what, format!("it is new, but was not added: {why}")),
            }
        }
    }

    fn place_of_output(&self, name: &str) -> Option<usize> {
        self.config.outputs.iter().position(|is| is.name == name)
    }

    fn add_output(&mut self, output: &OutputConfig, next: Option<usize>) -> Result<(), String> {
        if output.is_standard() {
            return Err(format!("it writes to standard output; {BEFORE_THE_START}"));
        }
        self.output_is_done(output)?;
        if let Some(path) = output.path() {
            self.file_is_free(path)?;
        }
        let _on_its_runtime = self.runtime.enter();
        let (Interest { on, matcher }, sink) =
            (assemble::interest(output)?, self.runtime.block_on(self.targets.sink(output))?);
        let name = &output.name;
        let added = match next.map(|place| &self.config.outputs[place].name) {
            Some(next) => self.control.add_output_before(next, name, on, matcher, sink),
            None => self.control.add_output(name, on, matcher, sink),
        };
        added.map_err(|error| error.to_string())
    }

    /// A removed output of the same name has to be done first. Until then, it gets the live options
    /// of the new one: it may need them to make progress.
    fn output_is_done(&mut self, output: &OutputConfig) -> Result<(), String> {
        let views = self.control.output_views();
        if !views.iter().any(|view| view.removed && view.name == output.name) {
            return Ok(());
        }
        let place = format!("outputs.{}", output.name);
        if let Some(done) = self.targets.reconfigure(&place, &*output.kind)
            && done?
        {
            self.changed.push(format!("{place}.{}", output.kind.key()));
        }
        Err("the removed one is not done: reload again once the log says that it has ended"
            .to_owned())
    }

    /// A file may have one output that writes to it, and no input that reads it at the same time.
    fn file_is_free(&self, path: &Path) -> Result<(), String> {
        self.file_is_not_written(path)?;
        let file = identity(path);
        let Some(input) = self.config.inputs.iter().find(|is| reads(is, &file)) else {
            return Ok(());
        };
        Err(format!("its file is read by `inputs.{}`", input.name))
    }

    fn file_is_not_written(&self, path: &Path) -> Result<(), String> {
        let (file, shown) = (identity(path), path.display());
        if let LettersTo::File(letters) = self.config.dead_letters.destination()
            && file == identity(&letters.path)
        {
            return Err(format!("the dead letters go to its file {shown}"));
        }
        if let Some(output) = self.writer_of(&file) {
            return Err(format!("its file {shown} is written by `outputs.{}`", output.name));
        }
        if self.leaving.lock().contains(&file) {
            return Err(format!(
                "its file {shown} is still written by an output that was removed: reload again \
                 once the log says that it has ended"
            ));
        }
        Ok(())
    }

    fn writer_of(&self, file: &Path) -> Option<&OutputConfig> {
        self.config.outputs.iter().find(|is| is.path().is_some_and(|path| identity(path) == file))
    }

    /// Why a handled event could have no output: an output of the file is missing, or does not yet
    /// take the events that it should.
    fn lacking(&self, wanted: &[OutputConfig]) -> Option<String> {
        wanted.iter().find_map(|to| {
            let Some(place) = self.place_of_output(&to.name) else {
                return Some(format!("the new `outputs.{}` could not be added", to.name));
            };
            let is = &self.config.outputs[place];
            let differs = (&is.on, &is.conditions) != (&to.on, &to.conditions);
            differs.then(|| format!("`outputs.{}` still takes the same events as before", to.name))
        })
    }

    fn remove_outputs(&mut self, wanted: &[OutputConfig]) {
        let lacking = self.lacking(wanted);
        let stays = |is: &OutputConfig| wanted.iter().any(|to| to.name == is.name);
        let gone: Vec<_> = self.config.outputs.iter().filter(|is| !stays(is)).cloned().collect();
        for output in gone {
            let (what, file) = (format!("outputs.{}", output.name), output.path().map(identity));
            // Otherwise its events would have no output.
            let inherits = |to: &&OutputConfig| file.is_some() && to.path().map(identity) == file;
            if let Some(heir) = wanted.iter().find(inherits) {
                let why = format!(
                    "it is gone from the file, but continues: `outputs.{}` cannot take over its file while greenroom runs",
                    heir.name
                );
                self.leave(what, why);
                continue;
            }
            if let Some(why) = &lacking {
                self.leave(what, format!("it is gone from the file, but continues: {why}"));
                continue;
            }
            match self.remove_output(&output.name, file) {
                Ok(()) => {
                    self.config.outputs.retain(|is| is.name != output.name);
                    self.changed.push(format!("{what} (removed)"));
                }
                Err(why) => self.leave(what, why),
            }
        }
    }

    /// The log reports its end, without anything waiting for it.
    fn remove_output(&self, name: &str, file: Option<PathBuf>) -> Result<(), ChangeError> {
        let removal = self.control.remove_output(name)?;
        let leaving = self.leaving.clone();
        leaving.lock().extend(file.clone());
        drop(self.runtime.spawn(async move {
            let gone = removal.done().await;
            if let Some(file) = file {
                leaving.lock().remove(&file);
            }
            let (output, events) = (gone.name, gone.events);
            match gone.error {
                None => tracing::info!(
                    output,
                    events,
                    "the output has ended: all its events are stored"
                ),
                Some(error) => {
                    tracing::error!(
                        output,
                        events,
                        error,
                        "the output could not store all its events"
                    );
                }
            }
        }));
        Ok(())
    }

    fn outputs_that_stay(&mut self, wanted: &[OutputConfig]) {
        for to in wanted {
            if let Some(place) = self.place_of_output(&to.name) {
                self.output_that_stays(place, to);
            }
        }
        let order = |some: &[OutputConfig], others: &[OutputConfig]| {
            let both = |one: &&OutputConfig| others.iter().any(|other| other.name == one.name);
            some.iter().filter(both).map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        let differs = order(&self.config.outputs, wanted) != order(wanted, &self.config.outputs);
        self.compare("outputs (their order)".to_owned(), differs);
    }

    /// The live options of its kind can change; its conditions and its kind cannot.
    fn output_that_stays(&mut self, place: usize, to: &OutputConfig) {
        let (mut is, mut to) = (self.config.outputs[place].clone(), to.clone());
        let what = format!("outputs.{}", is.name);
        self.live_options(&what, &mut is.kind, &mut to.kind);
        self.compare(what, is != to);
        self.config.outputs[place] = is;
    }

    fn add_inputs(&mut self, wanted: &Config) {
        let lacking = self.lacking(&wanted.outputs);
        for input in &wanted.inputs {
            if self.config.inputs.iter().any(|is| is.name == input.name) {
                continue;
            }
            let what = format!("inputs.{}", input.name);
            let added = lacking.clone().map_or_else(|| self.add_input(input), Err);
            match added {
                Ok(()) => {
                    self.config.inputs.push(input.clone());
                    self.changed.push(format!("{what} (added)"));
                }
                Err(why) => self.leave(what, format!("it is new, but was not added: {why}")),
            }
        }
    }

    fn add_input(&self, input: &InputConfig) -> Result<(), String> {
        for path in read_by(input) {
            if path == Path::new("-") {
                return Err(format!("it reads standard input; {BEFORE_THE_START}"));
            }
            let set = FileSet::find(&path)?;
            let files = set.as_ref().map_or(slice::from_ref(&path), FileSet::files);
            files.iter().try_for_each(|file| self.file_is_not_written(file))?;
        }
        self.store_is_free(input)?;
        let _on_its_runtime = self.runtime.enter();
        // A reload has its own thread, which may wait: for a server, for example.
        let opened = self.targets.source(input, &self.config.pools);
        let source = self.runtime.block_on(opened)?;
        let added = self.control.add_input(&input.name, assemble::input_config(input), source);
        added.map_err(|error| {
            drop(self.targets.forget_server(&input.name));
            error.to_string()
        })
    }

    /// Only one input may read a log.
    fn store_is_free(&self, input: &InputConfig) -> Result<(), String> {
        let Some(store) = store_of(input) else { return Ok(()) };
        let mut others = self.config.inputs.iter();
        let reader = others.find(|is| store_of(is).as_ref() == Some(&store));
        if let Some(other) = reader {
            return Err(format!(
                "its log is read by `inputs.{}`: reload again once that is removed, and the log of \
                 greenroom says that it has ended",
                other.name
            ));
        }
        if self.leaving.lock().contains(&store) {
            return Err(
                "its log is still read by an input that was removed: reload again once the \
                        log of greenroom says that it has ended"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether an input of the file still provides events: not if a new one could not be added and
    /// the existing ones have ended.
    fn is_something_read(&self, wanted: &[InputConfig]) -> bool {
        let (views, inputs) = (self.control.input_views(), &self.config.inputs);
        let is_read = |to: &InputConfig| views.iter().any(|is| is.name == to.name && is.is_read);
        wanted.iter().all(|to| inputs.iter().any(|is| is.name == to.name))
            || wanted.iter().any(is_read)
    }

    fn remove_inputs(&mut self, wanted: &[InputConfig]) {
        let none_stays = !self.is_something_read(wanted);
        let stays = |is: &InputConfig| wanted.iter().any(|to| to.name == is.name);
        let gone: Vec<_> = self.config.inputs.iter().filter(|is| !stays(is)).cloned().collect();
        for input in gone {
            let what = format!("inputs.{}", input.name);
            if none_stays {
                self.leave(what, NOTHING_TO_READ);
                continue;
            }
            match self.remove_input(&input) {
                Ok(()) => {
                    self.config.inputs.retain(|is| is.name != input.name);
                    self.changed.push(format!("{what} (removed)"));
                }
                Err(why) => self.leave(what, why),
            }
        }
    }

    /// The log reports when all its events are settled, without anything waiting for that.
    fn remove_input(&self, input: &InputConfig) -> Result<(), ChangeError> {
        let removal = self.control.remove_input(&input.name)?;
        let server = self.targets.forget_server(&input.name);
        let (leaving, store) = (self.leaving.clone(), store_of(input));
        leaving.lock().extend(store.clone());
        drop(self.runtime.spawn(async move {
            let gone = removal.done().await;
            if let Some(server) = server {
                server.ended(LAST_ANSWERS).await;
            }
            if let Some(store) = store {
                leaving.lock().remove(&store);
            }
            let (input, taken) = (gone.name, gone.taken);
            tracing::info!(input, taken, "the input has ended: all its events are settled");
        }));
        Ok(())
    }

    fn inputs_that_stay(&mut self, wanted: &[InputConfig]) {
        for to in wanted {
            let Some(place) = self.config.inputs.iter().position(|is| is.name == to.name) else {
                continue;
            };
            let (mut is, mut to) = (self.config.inputs[place].clone(), to.clone());
            let what = format!("inputs.{}", is.name);
            self.live_options(&what, &mut is.kind, &mut to.kind);
            self.compare(what, is != to);
            self.config.inputs[place] = is;
        }
    }
}
