//! Reloads of an engine that does not run yet: so an output that is removed is not done.

use std::{fs, path::PathBuf, sync::Arc};

use greenroom_bus::{
    engine::Engine,
    handler::{self, HandlerKind, Makes, OpenHandler},
    kind::Live,
};
use greenroom_config::{AnyOptions, Chosen, Yaml, count, options, read, registry};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{BEFORE_THE_START, Left, Reload, Reloaded};
use crate::{
    cli::Source,
    config,
    run::{assemble, targets::Targets},
};

/// A directory with a configuration and what was built of it.
struct Bench {
    directory: TempDir,
    reload: Reload,
    _engine: Engine,
    _runtime: Runtime,
}

/// A configuration with these inputs and outputs, whose `DIR` is a directory.
fn text(directory: &TempDir, inputs: &str, outputs: &str) -> String {
    let ends = format!("inputs: {{ {inputs} }}\noutputs: {{ {outputs} }}\n");
    let rest =
        "handlers: { h: { on: '**', pass: } }\ndead_letters: { file: { path: DIR/letters } }\n";
    (ends + rest).replace("DIR", directory.path().to_str().unwrap())
}

impl Bench {
    fn of(inputs: &str, outputs: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for file in ["in", "x", "y"] {
            fs::write(directory.path().join(file), "").unwrap();
        }
        let file = directory.path().join("greenroom.yaml");
        fs::write(&file, text(&directory, inputs, outputs)).unwrap();
        let (config, problems) = config::load(&file, &[]);
        let config = config.unwrap_or_else(|| panic!("{}", problems.summary()));
        let (runtime, targets) = (Runtime::new().unwrap(), Arc::new(Targets::default()));
        let built = runtime.block_on(assemble::engine(&config, &targets, None));
        let engine = built.unwrap_or_else(|why| panic!("{why}")).0;
        let source = Source { file, settings: Vec::new() };
        let (control, handle) = (engine.control(), runtime.handle().clone());
        let reload = Reload::new(source, control, config, handle, targets);
        Self { directory, reload, _engine: engine, _runtime: runtime }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("greenroom.yaml")
    }

    /// Reloads with these, and says what was changed and what was left.
    fn becomes(&self, inputs: &str, outputs: &str) -> (Vec<String>, Vec<Left>) {
        fs::write(self.file(), text(&self.directory, inputs, outputs)).unwrap();
        match self.reload.now() {
            Reloaded::Done { changed, left } => (changed, left),
            Reloaded::Mistakes(problems) => panic!("{}", problems.summary()),
        }
    }
}

/// Why this was left.
fn why<'a>(left: &'a [Left], what: &str) -> &'a str {
    let found = left.iter().find(|left| left.what == what);
    &found.unwrap_or_else(|| panic!("{what} in {left:?}")).why
}

const IN: &str = "i: { file: { path: DIR/in } }";
const DONE: &str = "done: { file: { path: DIR/done } }";

#[test]
fn c09_an_output_stays_whose_replacement_could_not_be_added_and_nothing_more_is_read() {
    let bench = Bench::of(IN, DONE);
    let more = format!("{IN}, more: {{ file: {{ path: DIR/x }} }}");
    let (changed, left) = bench.becomes(&more, "shown: { file: { path: '-' } }");
    assert_eq!(changed, [""; 0], "{left:?}");
    assert!(why(&left, "outputs.shown").contains("standard output"), "{left:?}");
    for what in ["outputs.done", "inputs.more"] {
        assert!(why(&left, what).contains("the new `outputs.shown`"), "{left:?}");
    }
    assert!(why(&left, "outputs.done").contains("but continues"), "{left:?}");
    let (changed, left) = bench.becomes(&more, "rest: { file: { path: DIR/rest } }");
    let expected = ["outputs.rest (added)", "outputs.done (removed)", "inputs.more (added)"];
    assert_eq!((changed, left), (expected.map(str::to_owned).to_vec(), vec![]));
}

#[test]
fn c09_an_output_stays_while_another_one_cannot_take_yet_what_it_took() {
    let both = "a: { on: a, file: { path: DIR/a } }, b: { on: b, file: { path: DIR/b } }";
    let bench = Bench::of(IN, both);
    let (changed, left) = bench.becomes(IN, "b: { on: [a, b], file: { path: DIR/b } }");
    assert_eq!(changed, [""; 0], "{left:?}");
    assert!(
        why(&left, "outputs.a").contains("`outputs.b` still takes the same events as before"),
        "{left:?}"
    );
}

#[test]
fn c09_a_file_is_not_read_while_an_output_that_was_removed_still_writes_it() {
    let stage = "stage: { file: { path: DIR/x } }";
    let bench = Bench::of(IN, &format!("{DONE}, {stage}"));
    let (changed, left) = bench.becomes(&format!("{IN}, x: {{ file: {{ path: DIR/x }} }}"), DONE);
    assert_eq!(changed, ["outputs.stage (removed)"], "{left:?}");
    assert!(why(&left, "inputs.x").contains("an output that was removed"), "{left:?}");
}

#[test]
fn c09_a_file_is_not_written_while_an_input_reads_it() {
    let follows = |path: &str| format!("i: {{ file: {{ path: DIR/{path}, follow: true }} }}");
    let bench = Bench::of(&follows("x"), DONE);
    let (changed, left) =
        bench.becomes(&follows("y"), &format!("{DONE}, x: {{ file: {{ path: DIR/x }} }}"));
    assert_eq!(changed, [""; 0], "{left:?}");
    assert_eq!(why(&left, "inputs.i"), BEFORE_THE_START);
    assert!(why(&left, "outputs.x").contains("is read by `inputs.i`"), "{left:?}");
}

#[test]
fn c09_a_file_is_not_written_that_is_one_of_those_that_an_input_names() {
    let bench = Bench::of("i: { file: { path: 'DIR/*.ndjson', follow: true } }", DONE);
    let new = format!("{DONE}, new: {{ file: {{ path: DIR/new.ndjson }} }}");
    let (changed, left) = bench.becomes(IN, &new);
    assert_eq!(changed, [""; 0], "{left:?}");
    assert!(why(&left, "outputs.new").contains("is read by `inputs.i`"), "{left:?}");
}

options! {
    /// A kind of which one option changes while it runs.
    struct Half = "half" {
        /// Changes.
        live: usize = count(0..=9).live().default("1");
        /// Does not.
        fixed: usize = count(0..=9).default("1");
    }
}

impl HandlerKind for Half {
    fn makes(&self) -> Makes {
        Makes::Nothing
    }

    fn open(&self) -> Result<OpenHandler, String> {
        Ok(OpenHandler::fixed(handler::discard::DiscardFactory))
    }
}

registry! {
    /// That kind.
    static OWN: Own of dyn HandlerKind = [handler::handler::<Half>("half", "Is half live.")];
}

options! {
    /// One that a configuration names.
    struct Named = "a handler" {
        .. /// It.
        kind: Chosen<Own>;
    }
}

fn half(text: &str) -> Chosen<Own> {
    read::<Named>(Yaml, &format!("half: {text}")).unwrap_or_else(|why| panic!("{why}")).kind
}

/// Takes whatever is wanted.
struct Takes;

impl Live for Takes {
    fn reconfigure(&self, _: &dyn AnyOptions) -> Result<bool, String> {
        Ok(true)
    }
}

fn before_the_start(what: &str) -> Left {
    Left { what: what.to_owned(), why: BEFORE_THE_START.to_owned() }
}

#[test]
fn c09_fixed_options_of_a_kind_that_has_live_ones_are_named_and_left() {
    let (bench, takes) = (Bench::of(IN, DONE), Arc::new(Takes));
    let live = Arc::downgrade(&takes) as _;
    bench.reload.targets.note("handlers.h".to_owned(), Some(live));
    let mut turn = bench.reload.turn();
    let (mut is, mut wanted) = (half("{}"), half("{ live: 2, fixed: 2 }"));
    turn.live_options("handlers.h", &mut is, &mut wanted);
    assert_eq!(turn.changed, ["handlers.h.half"]);
    assert_eq!(turn.left, [before_the_start("handlers.h.half.fixed")]);
    assert_eq!((&is, &wanted), (&half("{ live: 2 }"), &is));
}

#[test]
fn c09_a_live_option_that_nobody_carries_out_is_left() {
    let bench = Bench::of(IN, DONE);
    let mut turn = bench.reload.turn();
    let (mut is, mut wanted) = (half("{}"), half("{ live: 2 }"));
    turn.live_options("handlers.h", &mut is, &mut wanted);
    assert_eq!((&turn.changed[..], &is), (&[][..], &half("{}")));
    assert_eq!(turn.left, [before_the_start("handlers.h.half")]);
    turn.left.clear();
    turn.live_options("handlers.h", &mut is, &mut half("{}"));
    assert_eq!(turn.left, [], "nothing has changed");
}
