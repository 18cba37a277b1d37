//! `greenroom demo` as a user meets it: what it prints, its counters, its exit code.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

/// What a demo came to.
struct Played {
    code: i32,
    table: String,
    log: String,
}

fn demo(args: &[&str]) -> Played {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    let output = command.arg("demo").args(args).env_remove("RUST_LOG").output().unwrap();
    Played {
        code: output.status.code().unwrap(),
        table: String::from_utf8(output.stdout).unwrap(),
        log: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Played {
    /// The figures of a row, as they are printed.
    fn row(&self, name: &str) -> Vec<&str> {
        let line = self.table.lines().find_map(|line| line.strip_prefix(&format!("{name}  ")));
        line.unwrap_or_else(|| panic!("no row `{name}`: {}", self.table))
            .split_whitespace()
            .collect()
    }
}

#[test]
fn c14_a_demo_with_a_flaky_target_loses_and_swaps_nothing_and_repeats_what_it_must() {
    let played = demo(&["--seconds", "1.2", "--seed", "3"]);
    assert_eq!(played.code, 0, "{}{}", played.table, played.log);
    assert_eq!(played.row("sent"), played.row("handled"));
    assert_ne!(played.row("retried: refused"), ["0"], "a flaky target fails");
    assert_eq!(played.row("lost"), ["0"]);
    assert_eq!(played.row("out of order"), ["0"]);
    assert_eq!(played.row("repeated"), played.row("retried: answer lost"));
    assert_eq!(played.row("repeated at most"), played.row("retried: answer lost"));
    assert_eq!(played.row("arrival to handled, p99").len(), 2, "a number and its unit");
    // Without a terminal: lines while it goes on, and nothing that moves a cursor.
    assert!(played.log.contains("; lanes: "), "{}", played.log);
    assert!(!played.log.contains('\x1b') && !played.table.contains('\x1b'));
}

#[test]
fn c14_a_slow_key_is_shown_with_lanes_and_with_hashing_side_by_side() {
    let played = demo(&["--slow-key", "--seconds", "1", "--seed", "3"]);
    assert_eq!(played.code, 0, "{}{}", played.table, played.log);
    assert!(
        played.table.contains("  lanes  hashing\n") || played.table.contains("  lanes   hashing\n")
    );
    for name in ["sent", "handled"] {
        let [lanes, hashing] = played.row(name)[..] else { panic!("{}", played.table) };
        assert_eq!(lanes, hashing, "the same messages on both sides: {}", played.table);
    }
    for name in ["lost", "out of order", "repeated", "repeated at most"] {
        assert_eq!(played.row(name), ["0", "0"], "{name}");
    }
    for name in ["all other keys, p50", "all other keys, p99", "order-0042, p50", "order-0042, p99"]
    {
        assert_eq!(played.row(name).len(), 4, "two numbers with their units: {}", played.table);
    }
}

#[test]
fn c14_a_time_that_is_none_is_told() {
    for wrong in ["0", "-3", "soon"] {
        let played = demo(&["--seconds", wrong]);
        assert_eq!((played.code, played.table.as_str()), (2, ""));
        assert!(played.log.contains("--seconds"), "{}", played.log);
    }
}

#[test]
fn c14_the_playground_prints_its_address_and_takes_settings_until_ctrl_c() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(["demo", "--playground", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = log.find(|line| line.contains("the playground is at http://")).unwrap();
    let (_, address) = line.split_once("http://").unwrap();
    let address = address.split('/').next().unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("GET /").contains("<title>greenroom: playground"));
    let changed = ask("POST /api/playground/settings?workers=3");
    assert!(changed.starts_with("HTTP/1.0 200") && changed.contains("\"value\": 3.0"), "{changed}");
    let refused = ask("POST /api/playground/settings?workers=300");
    assert!(refused.starts_with("HTTP/1.0 400") && refused.contains("from 1 to 32"), "{refused}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn c14_the_playground_is_refused_to_other_machines() {
    let played = demo(&["--playground", "0.0.0.0:0"]);
    assert_eq!(played.code, 1);
    assert!(played.log.contains("other machines could reach it"), "{}", played.log);
}

#[test]
fn c14_a_demo_with_the_dashboard_prints_its_address_and_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(["demo", "--dashboard", "127.0.0.1:0"]).env_remove("RUST_LOG");
    command.env("TMPDIR", place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = log.find(|line| line.contains("the dashboard is at http://")).unwrap();
    let (_, address) = line.split_once("http://").unwrap();
    let address = address.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.0 200") && page.contains("<title>greenroom"), "{page}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    // It would be stuck where nobody reads what it writes.
    let rest: Vec<_> = log.collect();
    let code = child.wait().unwrap().code();
    // Keys that were parked by then are refused, which is 3.
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {rest:#?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{rest:#?}");
}
