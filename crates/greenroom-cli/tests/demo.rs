//! `greenroom demo` as a user meets it: what it prints, its counters, its exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot start its binary has failed")]

use std::process::Command;

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
    assert_ne!(played.row("tried again: refused"), ["0"], "a flaky target fails");
    assert_eq!(played.row("lost"), ["0"]);
    assert_eq!(played.row("out of order"), ["0"]);
    assert_eq!(played.row("repeated"), played.row("tried again: answer lost"));
    assert_eq!(played.row("repeated at most"), played.row("tried again: answer lost"));
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
