//! The program is asked for everything that it offers, as a comparison would ask.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// The program, running, and what it says it offers.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    hello: Value,
}

impl Program {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_peers"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let hello = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        Self { input: child.stdin.take(), child, output, hello }
    }

    fn ask(&mut self, system: &str, row: &str, messages: u64) -> Value {
        let request = json!({"system": system, "row": row, "messages": messages});
        writeln!(self.input.as_mut().unwrap(), "{request}").unwrap();
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    /// Each system with each of its rows.
    fn offers(&self) -> Vec<(String, String)> {
        let systems = self.hello["systems"].as_array().unwrap().iter();
        let rows = systems.flat_map(|system| {
            let rows = system["rows"].as_array().unwrap().iter();
            rows.map(|row| (text(&system["name"]), text(row)))
        });
        rows.collect()
    }

    /// Ends its input, and says whether that ended it as it should.
    fn ends_well(mut self) -> bool {
        drop(self.input.take());
        self.output.next().is_none() && self.child.wait().unwrap().success()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn every_row_of_every_system_gets_a_figure() {
    let mut program = Program::start();
    let offers = program.offers();
    assert!(offers.len() > 100, "no more than {offers:?}");
    for (system, row) in offers.iter().filter(|(_, row)| row != "E-full") {
        let said = program.ask(system, row, 2_000);
        assert!(said["value"].as_f64() > Some(0.0), "{system} {row}: {said}");
    }
    assert!(program.ends_well());
}

#[test]
fn full_inboxes_take_at_least_what_the_messages_take() {
    for (system, row) in Program::start().offers().iter().filter(|(_, row)| row == "E-full") {
        let mut program = Program::start();
        let said = program.ask(system, row, 1);
        let ratio = said["value"].as_f64().unwrap_or_else(|| panic!("{system}: {said}"));
        assert!((1.0..10.0).contains(&ratio), "{system}: {ratio}");
        assert!(program.ends_well());
    }
}

#[test]
fn versions_are_numbers_of_packages() {
    let program = Program::start();
    for system in program.hello["systems"].as_array().unwrap() {
        let version = text(&system["version"]);
        let parts: Vec<_> = version.split('.').collect();
        assert!(parts.len() == 3 && parts[0].parse::<u32>().is_ok(), "{system}");
    }
    assert!(program.ends_well());
}

#[test]
fn a_request_that_is_wrong_is_an_error_and_the_next_is_answered() {
    let mut program = Program::start();
    let refused = program.ask("crossbeam", "D1", 2_000);
    assert_eq!(refused, json!({"error": "crossbeam does not offer D1"}));
    assert!(program.ask("kanal", "D1", 2_000)["value"].is_number());
    assert!(program.ends_well());
}
