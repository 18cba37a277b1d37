//! Configuration files in YAML and TOML, down to the checks of the daemon.

use std::fs;

use fuzz::fuzz;
use greenroom_cli::config::{Config, Place, Problems, load};
use greenroom_config::{Format, World, apply, decode, interpolate};

const YAML: &[&[u8]] = &[
    include_bytes!("../../../examples/orders/greenroom.yaml"),
    include_bytes!("../../../examples/process-workers/greenroom.yaml"),
    b"inputs: { i: { file: { path: in, records: { type: { pointer: /kind }, source: /app } } } }\nhandlers: { h: { on: 'a.**', where: { /total: { above: 3 }, subject: { in: [a, b] } }, pass: {} } }\noutputs: { o: { http: { url: 'http://x/' } } }\n",
    b"inputs: &a { i: { generator: { rate: 20/s, keys: 5 } } }\nhandlers: { h: { on: '**', order_by: subject, simulate: { latency: 1ms..5ms } } }\nother: *a\n",
];

const TOML: &[&[u8]] = &[
    b"[inputs.i.file]\npath = \"in\"\n[handlers.h]\non = \"**\"\norder_by = \"/a/b\"\npass = {}\n[outputs.o.file]\npath = 'out'\n",
    b"inputs = { i = { generator = { rate = \"20/s\" } } }\npools.default.workers = 0x10\n[[x]]\ny = 1979-05-27T07:32:00Z\n",
];

const TOKENS: &[&str] = &[
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    "\"",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "#",
    "?",
    "~",
    "null",
    "true",
    "0x7f",
    "1e999",
    "-1",
    ".inf",
    "${HOME}",
    "${X:-",
    "$${",
    "\t",
    "\u{0}",
    "\u{fc}",
    "\u{feff}",
    "\u{1b}[2J",
    "\u{2028}",
    "[[",
    "]]",
    "\"\"\"",
    "'''",
    "= ",
    ".",
    "inputs",
    "handlers",
    "on",
    "where",
    "exec: { command: [x] }",
    "retry",
    "attempts",
    "5s",
    "64KiB",
    "99999999999999999999",
    "workers",
    "order_by",
    "{a: ",
    "- - ",
    "a.b.c = 1\n",
    "\\u0000",
    "\\",
];

/// Every place is in the text, and nothing that is shown steers a terminal; a tab does not.
fn assert_they_can_be_shown(problems: &Problems, text: &str) {
    let lines: Vec<&str> = text.lines().flat_map(|line| line.split('\r')).collect();
    for problem in problems.sorted() {
        if let Place::Source(span) = &problem.place {
            assert!(
                (1..=lines.len() + 1).contains(&span.line),
                "{problem:?} of {} lines",
                lines.len()
            );
            let width = lines.get(span.line - 1).map_or(0, |line| line.chars().count());
            assert!((1..=width + 1).contains(&span.column), "{problem:?} in a line of {width}");
        }
        assert!(!problem.message.is_empty());
    }
    let shown = problems.render(false);
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!shown.contains(steers), "{shown:?}");
}

/// As the daemon does, but for what lies outside of the text.
fn decoded(format: Format, text: &str) {
    let mut problems = Problems::new("greenroom.yaml", text);
    if let Some(mut root) = format.parse(text, &mut problems) {
        apply(&mut root, "pools.default.workers=3", &mut problems);
        let directory = std::path::Path::new("nowhere");
        let world = World { env: &|name| (name == "HOME").then(|| "secret".to_owned()), directory };
        interpolate(&mut root, &world, &mut problems);
        let (config, _) = decode::<Config>(&root, directory, &mut problems);
        assert!(config.is_some() || problems.errors() > 0, "nothing, and no word why");
    }
    assert_they_can_be_shown(&problems, text);
}

#[test]
fn yaml() {
    fuzz!(YAML, TOKENS, |input| decoded(Format::Yaml, &String::from_utf8_lossy(input)));
}

#[test]
fn toml() {
    fuzz!(TOML, TOKENS, |input| decoded(Format::Toml, &String::from_utf8_lossy(input)));
}

#[test]
fn settings() {
    const SETTINGS: &[&[u8]] = &[b"a.b=1", b"pools.default.workers=[1,2]", b"a=", b"=x", b"a"];
    fuzz!(SETTINGS, TOKENS, |input| {
        let text = "pools: { default: { workers: 3 } }\n";
        let mut problems = Problems::new("greenroom.yaml", text);
        let mut root = Format::Yaml.parse(text, &mut problems).expect("a tree");
        apply(&mut root, &String::from_utf8_lossy(input), &mut problems);
        assert_they_can_be_shown(&problems, text);
    });
}

#[test]
fn files_of_the_daemon() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("greenroom.yaml");
    fuzz!(YAML, TOKENS, |input| {
        fs::write(&path, input).expect("a file");
        let (config, problems) = load(&path, &[]);
        assert_eq!(config.is_some(), problems.errors() == 0);
        let _ = problems.render(true);
    });
}
