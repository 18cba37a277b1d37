//! `greenroom why KEY [ADDRESS]`: the state of a key, and the reason (C13).

use std::process::ExitCode;

use serde_json::Value;
use url::form_urlencoded;

use super::advise::elsewhere;
use crate::{
    admin_client,
    cli::WhyArgs,
    exit::{self, Exit},
    letters::escaped::printable,
    shell::quoted,
};

/// Asks the running greenroom, and prints a line for each handler and input that has events of the
/// key.
pub fn why(arguments: &WhyArgs) -> ExitCode {
    let key: String = form_urlencoded::byte_serialize(arguments.key.as_bytes()).collect();
    match admin_client::get(&arguments.address, &format!("/api/keys?key={key}")) {
        Ok(found) => {
            let next = what_next(&found, &arguments.address, &quoted(&arguments.key));
            exit::answer(&(told(&arguments.key, &found) + &next + &without_key(&found)))
        }
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// Why a key can have nothing that waits.
const NOTHING: &str = "none has come, or all are handled, dead letters, or with an output";

fn told(key: &str, found: &Value) -> String {
    let lines = found["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let shares = found["shares"].as_array().map(Vec::as_slice).unwrap_or_default();
    match lines {
        [] if !shares.is_empty() => {
            let told = shares.iter().map(|share| {
                let (pool, text) = (text(share, "pool"), text(share, "text"));
                format!(
                    "`{key}` is no key, but a share of the pool `{pool}`: {}\n",
                    printable(&text)
                )
            });
            told.collect()
        }
        [] => format!("no event of `{key}` waits or is in hand: {NOTHING}\n"),
        [line] => format!("{}\n", printable(&text(line, "text"))),
        lines => {
            let told = lines.iter().map(|line| {
                let (handler, input) = (text(line, "handler"), text(line, "input"));
                format!("{handler}, from {input}: {}\n", printable(&text(line, "text")))
            });
            told.collect()
        }
    }
}

/// The note about events without a key, which an order by key leaves out.
fn without_key(found: &Value) -> String {
    let told = found["without_key"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines = told.iter().filter_map(Value::as_str);
    lines.map(|line| format!("note: {}\n", printable(line))).collect()
}

/// The next command: for a key that waits for an operator the one that decides, and for one that
/// has nothing left the one that shows its dead letters.
fn what_next(found: &Value, address: &str, key: &str) -> String {
    let lines = found["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let address = elsewhere(address);
    let shares = found["shares"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let ([], [share, ..]) = (lines, shares) {
        let pool = quoted(share["pool"].as_str().unwrap_or_default());
        return format!("next: `greenroom share list {pool}{address}`\n");
    }
    if lines.is_empty() {
        let list = format!("greenroom dead-letters list --key {key}{address}");
        return format!("next: `{list}` shows those that were given up\n");
    }
    if !lines.iter().any(|line| line["state"] == "parked") {
        return lines.iter().find_map(|line| resume(line, &address)).unwrap_or_default();
    }
    format!(
        "next: `greenroom key resume {key}{address}` retries the failed event;\n      \
         `skip` instead of `resume` makes it a dead letter, and `drop` also all events behind it\n"
    )
}

/// The command that resumes the share that a key waits for, if it is paused. One whose `in_hand` is
/// 0 is resumed by another limit.
fn resume(line: &Value, address: &str) -> Option<String> {
    let share = &line["share"];
    let is_paused = ["paused", "gone"].iter().any(|state| share["state"] == *state);
    if !is_paused || share["limits"]["in_hand"] == 0 {
        return None;
    }
    let (pool, share) = (quoted(line["pool"].as_str()?), quoted(share["share"].as_str()?));
    Some(format!("next: `greenroom share resume {pool} {share}{address}`\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c13_several_lines_are_told_apart() {
        let line =
            |handler: &str| json!({ "handler": handler, "input": "i", "text": "1 waiting; x" });
        let one = json!({ "lines": [line("a")] });
        assert_eq!(told("k", &one), "1 waiting; x\n");
        let two = json!({ "lines": [line("a"), line("b")] });
        assert_eq!(told("k", &two), "a, from i: 1 waiting; x\nb, from i: 1 waiting; x\n");
        let none = json!({ "lines": [] });
        assert_eq!(
            told("k", &none),
            "no event of `k` waits or is in hand: none has come, or all are handled, dead letters, \
             or with an output\n"
        );
    }

    #[test]
    fn c13_for_a_key_that_has_nothing_left_it_names_the_dead_letters() {
        let next = what_next(&json!({ "lines": [] }), "h:1", "'a b'");
        assert!(next.contains("`greenroom dead-letters list --key 'a b' h:1`"), "{next}");
    }

    #[test]
    fn c13_q11_for_a_key_whose_share_is_paused_it_names_the_resume() {
        let line = |state: &str, in_hand: Option<u32>| {
            let share = json!({ "share": "a b", "state": state, "limits": { "in_hand": in_hand } });
            json!({ "lines": [{ "state": "ready", "pool": "erp", "text": "x", "share": share }] })
        };
        for state in ["paused", "gone"] {
            let next = what_next(&line(state, Some(5)), "h:1", "k");
            assert_eq!(next, "next: `greenroom share resume erp 'a b' h:1`\n");
        }
        assert_eq!(what_next(&line("full", Some(5)), "h:1", "k"), "");
        assert_eq!(what_next(&line("paused", Some(0)), "h:1", "k"), "");
    }

    #[test]
    fn c13_q11_a_share_in_place_of_a_key_is_told() {
        let share = json!({ "pool": "erp", "text": "share acme: 1 in hand; 0 waiting" });
        let found = json!({ "lines": [], "shares": [share] });
        let said =
            "`acme` is no key, but a share of the pool `erp`: share acme: 1 in hand; 0 waiting\n";
        assert_eq!(told("acme", &found), said);
        assert_eq!(
            what_next(&found, admin_client::ADDRESS, "acme"),
            "next: `greenroom share list erp`\n"
        );
    }

    #[test]
    fn f06_events_without_a_key_are_told_with_a_key() {
        let found = json!({ "lines": [], "without_key": ["488 events had no key at `a`"] });
        assert_eq!(without_key(&found), "note: 488 events had no key at `a`\n");
        assert_eq!(without_key(&json!({ "lines": [] })), "");
    }

    #[test]
    fn c13_for_a_key_that_is_parked_it_says_what_to_ask_for() {
        let line = |state: &str| json!({ "lines": [{ "state": state, "text": "x" }] });
        assert_eq!(what_next(&line("retrying"), "h:1", "k"), "");
        let next = what_next(&line("parked"), "h:1", "'a b'");
        assert!(next.contains("`greenroom key resume 'a b' h:1`"), "{next}");
        let next = what_next(&line("parked"), admin_client::ADDRESS, "k");
        assert!(next.contains("`greenroom key resume k`"), "{next}");
    }
}
