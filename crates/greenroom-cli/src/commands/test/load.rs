//! Loads a test file and its configuration, and checks that the two fit together.

use std::{env, path::Path};

use greenroom_config::{
    Format, Kinds, Place, Places, Problem, Problems, World, decode, directory_of, interpolate,
    near, text_of,
    tree::{Node, Value},
};

use super::options::{CaseOptions, Expectations, StandInOptions, TestFile, stored};
use crate::config::{self, Config};

/// A test file that can be run.
pub(super) struct LoadedTests {
    pub(super) config: Config,
    pub(super) tests: TestFile,
    pub(super) places: Places,
    /// To show places by.
    pub(super) problems: Problems,
}

/// # Errors
/// The problems of either file.
pub(super) fn load(file: &Path) -> Result<LoadedTests, Problems> {
    let (tests, places, mut problems) = read(file)?;
    let (config, of_config) = config::load_as_written(&tests.config, &[]);
    let Some(config) = config else { return Err(of_config) };
    for case in &tests.cases {
        TestFileChecker { config: &config, places: &places, problems: &mut problems }.case(case);
    }
    let mut checker = TestFileChecker { config: &config, places: &places, problems: &mut problems };
    checker.stand_ins("", &tests.handlers, &tests.outputs);
    match problems.errors() {
        0 => Ok(LoadedTests { config, tests, places, problems }),
        _ => Err(problems),
    }
}

fn read(file: &Path) -> Result<(TestFile, Places, Problems), Problems> {
    let name = file.display().to_string();
    let text = text_of(file).map_err(|unread| {
        let mut problems = Problems::new(&*name, &unread.text);
        problems.push(unread.problem.help("docs/test-files.md has one to start from"));
        problems
    })?;
    let mut problems = Problems::new(name, &text);
    let Some(mut root) = Format::of(file).parse(&text, &mut problems) else {
        return Err(problems);
    };
    let lookup = |name: &str| env::var(name).ok();
    let world = World { env: &lookup, directory: directory_of(file) };
    if let Some(place) = inputs_of(&root) {
        let problem = Problem::error("this is a configuration, not a test file", place);
        problems.push(problem.help("docs/test-files.md has a test file; its `config` names this"));
        return Err(problems);
    }
    interpolate(&mut root, &world, &mut problems);
    let (tests, places) = decode::<TestFile>(&root, world.directory, &mut problems);
    match tests {
        Some(tests) if problems.errors() == 0 => {
            if tests.cases.is_empty() {
                let text = "there is no case";
                let problem = Problem::error(text, places.at("cases").place);
                problems.push(problem.help("name at least one under `cases`"));
                return Err(problems);
            }
            Ok((tests, places, problems))
        }
        _ => Err(problems),
    }
}

/// Where a configuration that was given in place of a test file names its inputs.
fn inputs_of(root: &Node) -> Option<Place> {
    let Value::Map(entries) = &root.value else { return None };
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    find("inputs").filter(|_| find("cases").is_none()).map(|entry| entry.place.clone())
}

struct TestFileChecker<'a> {
    config: &'a Config,
    places: &'a Places,
    problems: &'a mut Problems,
}

impl TestFileChecker<'_> {
    fn error(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        let place: Place = self.places.at(path).place;
        self.problems.push(Problem::error(message, place).help(help));
    }

    fn case(&mut self, case: &CaseOptions) {
        let path = format!("cases.{}.", case.name);
        self.stand_ins(&path, &case.handlers, &case.outputs);
        let inputs: Vec<_> = self.config.inputs.iter().map(|input| &*input.name).collect();
        if let Some(input) = &case.input {
            self.known(&format!("{path}input"), "input", input, &inputs);
        } else if case.event.is_none() && inputs.len() > 1 {
            let part = if case.record.is_some() { "record" } else { "request" };
            let help = format!("add `input`: one of {}", inputs.join(", "));
            self.error(&format!("{path}{part}"), "there are several inputs", help);
        }
        self.expectations(&format!("{path}expect."), &case.expect);
    }

    fn expectations(&mut self, path: &str, expected: &Expectations) {
        let config = self.config;
        let handlers: Vec<_> = config.handlers.iter().map(|handler| &*handler.name).collect();
        let outputs: Vec<_> = config.outputs.iter().map(|output| &*output.name).collect();
        let pools: Vec<_> = config.pools.iter().map(|pool| &*pool.name).collect();
        for handler in expected.handler.iter().flatten() {
            self.known(&format!("{path}handler"), "handler", handler, &handlers);
        }
        for pool in expected.pool.iter().flatten() {
            self.known(&format!("{path}pool"), "pool", pool, &pools);
        }
        let named = expected.outputs.as_ref().and_then(|outputs| stored(outputs).ok());
        for (output, _) in named.iter().flatten() {
            self.known(&format!("{path}outputs"), "output", output, &outputs);
        }
        for (place, letter) in expected.letters.iter().enumerate() {
            let path = format!("{path}letters.{place}.");
            if let Some(handler) = &letter.handler {
                self.known(&format!("{path}handler"), "handler", handler, &handlers);
            }
            if let Some(output) = &letter.output {
                self.known(&format!("{path}output"), "output", output, &outputs);
            }
        }
    }

    fn stand_ins(&mut self, path: &str, handlers: &[StandInOptions], outputs: &[StandInOptions]) {
        let config = self.config;
        let known: Vec<_> = config.handlers.iter().map(|handler| &*handler.name).collect();
        for stand_in in handlers {
            let path = format!("{path}handlers.{}", stand_in.name);
            self.known(&path, "handler", &stand_in.name, &known);
            let named = config.handlers.iter().find(|handler| handler.name == stand_in.name);
            if let Some(handler) = named.filter(|handler| handler.kind.status().is_none()) {
                self.posts_nothing(&path, handler.kind.key(), stand_in);
            }
        }
        let known: Vec<_> = config.outputs.iter().map(|output| &*output.name).collect();
        for stand_in in outputs {
            let path = format!("{path}outputs.{}", stand_in.name);
            self.known(&path, "output", &stand_in.name, &known);
            let named = config.outputs.iter().find(|output| output.name == stand_in.name);
            if let Some(output) = named.filter(|output| output.kind.status().is_none()) {
                self.posts_nothing(&path, output.kind.key(), stand_in);
            }
        }
    }

    fn posts_nothing(&mut self, path: &str, kind: &str, stand_in: &StandInOptions) {
        if stand_in.posts() {
            let text = format!("`{}` is of the kind `{kind}`, and has no status", stand_in.name);
            self.error(path, text, "write an `outcome`, such as `failure`");
        }
    }

    fn known(&mut self, path: &str, part: &str, name: &str, known: &[&str]) {
        if !known.contains(&name) {
            let help = near::suggestion(name, known.iter().copied());
            let help = help.unwrap_or_else(|| match known {
                [] => format!("it names no {part}"),
                known => format!("it is one of {}", known.join(", ")),
            });
            self.error(path, format!("the configuration has no {part} `{name}`"), help);
        }
    }
}
