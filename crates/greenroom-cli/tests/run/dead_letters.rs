//! Dead letters in a store: found, edited, replayed and dropped, by a running greenroom and without
//! one (C04, D06).

use std::{
    fs,
    io::Write as _,
    process::{Output, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    small_disk::SmallDisk,
    stage::{Run, Stage, event, lines},
};

/// A worker that fails for events whose data says so, unless a file `mended` is there.
const WORKER: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    event = request["event"]
    data = event.get("data") or {}
    if not os.path.exists("mended"):
        reply = {"outcome": "reject", "error": "503 after %d ms \u001b[31m" % data.get("n", 0)}
    else:
        time.sleep(data.get("slow", 0))
        with open("handled", "a") as done:
            done.write(event["id"] + "\n")
        reply = {"outcome": "success"}
    print(json.dumps(dict(reply, token=request["token"])), flush=True)
"#;

/// A handler that fails for good.
fn config(more: &str) -> String {
    format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }} }}
pools: {{ default: {{ workers: 2 }} }}
handlers: {{ h: {{ on: test.happened, order_by: subject, exec: {{ command: [python3, worker.py] }} }} }}
dead_letters: {{ store: {{ path: letters{more} }} }}
"
    )
}

/// The same with a handler that passes events on.
fn mended(more: &str) -> String {
    config(more)
        .replace("exec: { command: [python3, worker.py] }", "pass:")
        .replace("dead_letters:", "outputs: { done: { file: { path: done } } }\ndead_letters:")
}

/// A stage with so many letters in its store.
fn letters(count: usize) -> Stage {
    let stage = Stage::with(&config(""));
    stage.write("worker.py", WORKER);
    let data = |n| json!({ "n": n, "card": "4711" });
    let events: Vec<_> = (0..count)
        .map(|n| event(&format!("e{n}"), "test.happened", &format!("k{}", n % 3), data(n)))
        .collect();
    stage.write_events("in", &events);
    let report = stage.run().report();
    assert_eq!(report["dead_lettered"], count, "{report}");
    stage.write("in", "");
    stage
}

fn ask(stage: &Stage, arguments: &str) -> Output {
    let mut command = stage.command("dead-letters");
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn said(stage: &Stage, arguments: &str) -> String {
    let output = ask(stage, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(stage: &Stage, arguments: &str) -> String {
    let output = ask(stage, arguments);
    assert!(!output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn listed(stage: &Stage, arguments: &str) -> Value {
    serde_json::from_str(&said(stage, &format!("list {arguments} --json"))).unwrap()
}

#[test]
fn c04_letters_are_found_edited_dropped_and_replayed_without_a_daemon() {
    let stage = letters(6);
    let text = said(&stage, "list --store letters");
    assert!(text.starts_with("number  state") && text.contains("6 letters"), "{text}");
    let groups = said(&stage, "list --config greenroom.yaml --by group");
    assert!(groups.contains("group") && groups.contains("rejected"), "{groups}");
    assert_eq!(listed(&stage, "--store letters --key k1")["totals"]["letters"], 2);
    let page = listed(&stage, "--store letters --limit 4");
    assert_eq!((page["letters"].as_array().unwrap().len(), &page["after"]), (4, &json!(4)));
    // Letters come in the order in which two workers failed, so the number is looked up.
    let number = listed(&stage, "--store letters --key k0")["letters"][0]["number"].clone();
    let show = format!("show {number} --store letters");
    let shown: Value = serde_json::from_str(&said(&stage, &show)).unwrap();
    assert_eq!(shown["event"]["data"]["card"], "4711");
    let first = shown["event"]["id"].clone();
    assert!(refused(&stage, "show 99 --store letters").contains("there is no dead letter 99"));
    let change = "--set /data/n=\"seven\" --set /id=edited";
    said(&stage, &format!("edit {number} --store letters {change}"));
    let shown: Value = serde_json::from_str(&said(&stage, &show)).unwrap();
    assert_eq!((&shown["event"]["id"], &shown["original"]["id"]), (&json!("edited"), &first));
    let error = refused(&stage, "edit 2 --store letters --set /id=");
    assert!(error.contains("not an event"), "{error}");
    let exported = said(&stage, "export --store letters --since 1h");
    assert_eq!(exported.lines().count(), 6);
    assert!(refused(&stage, "drop --store letters").contains("no letters are selected"));
    assert!(
        refused(&stage, "drop --store letters --key k2").contains("2 letters would be dropped")
    );
    assert_eq!(said(&stage, "drop --store letters --key k2 --yes"), "2 letters were dropped\n");
    let marked = said(&stage, "replay --store letters --all");
    assert!(marked.contains("4 letters are marked; the next start"), "{marked}");
    stage.write("greenroom.yaml", mended(""));
    stage.run().counted(0, [4, 4, 0, 0]);
    let done: Vec<_> = stage.read("done").iter().map(|event| event["id"].clone()).collect();
    assert_eq!(done.len(), 4);
    assert!(done.contains(&json!("edited")) && !done.contains(&first), "{done:?}");
    assert_eq!(listed(&stage, "--store letters")["totals"]["letters"], 0);
    let status = said(&stage, "replay --store letters --status");
    assert!(status.contains("done"), "{status}");
}

#[test]
fn c04_a_running_greenroom_is_asked_at_its_address() {
    let stage = letters(5);
    let daemon_config = mended("")
        .replace("file: { path: in }", "generator: { rate: 1/s, types: [other] }")
        + "no_handler: ignore\nadmin: { listen: 127.0.0.1:0 }\n";
    stage.write("greenroom.yaml", daemon_config);
    let daemon = Daemon::start(&stage);
    let at = &daemon.address;
    assert_eq!(listed(&stage, at)["totals"]["letters"], 5);
    assert_eq!(listed(&stage, "--store letters")["totals"]["letters"], 5, "who reads is let in");
    for change in ["drop --all --yes", "replay --all", "edit 1 --set /id=x"] {
        let error = refused(&stage, &format!("{change} --store letters"));
        assert!(error.contains("through its admin listener"), "{error}");
    }
    let exported = said(&stage, &format!("export {at} --key k0"));
    assert_eq!(exported.lines().count(), 2);
    said(&stage, &format!("edit 2 {at} --set /data/new=1"));
    stage.write("event.json", event("whole", "test.happened", "k9", json!({})).to_string());
    said(&stage, &format!("edit 3 {at} --file event.json"));
    assert!(
        refused(&stage, &format!("edit 3 {at} --file greenroom.yaml")).contains("not an event")
    );
    let (status, body) = daemon.post("/api/dead-letters/drop?all=true");
    assert_eq!(status, 409, "{body}");
    assert!(body["error"]["next"].as_str().unwrap().contains("confirm=5"), "{body}");
    assert_eq!(daemon.post("/api/dead-letters/drop").0, 400);
    assert_eq!(daemon.post("/api/dead-letters/replay").0, 400);
    let (status, _) = daemon.ask(
        "POST",
        "/api/dead-letters/replay?all=true",
        &format!("Host: {at}\r\nOrigin: http://evil.example\r\n"),
    );
    assert_eq!(status, 403);
    assert_eq!(said(&stage, &format!("drop {at} --id 1 --yes")), "1 letter was dropped\n");
    let replayed = said(&stage, &format!("replay {at} --all --rate 1000/s"));
    assert!(replayed.contains("4 letters are handled again"), "{replayed}");
    daemon.wait_for("/api/dead-letters", |page| page["totals"]["letters"] == 0);
    let run = daemon.stop();
    assert_eq!(run.code, 0, "{run:?}");
    let done: Vec<_> = stage.read("done").iter().map(|event| event["id"].clone()).collect();
    assert!(done.contains(&json!("whole")) && done.len() == 4, "{done:?}");
}

#[test]
fn c04_a_daemon_with_a_file_of_letters_says_what_it_cannot_do() {
    let stage = Stage::with(
        "
inputs: { i: { generator: { rate: 1/s, types: [other] } } }
handlers: { h: { on: none, drop: } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    let error = refused(&stage, &format!("replay {} --all", daemon.address));
    assert!(error.contains("dead letters go to a file") && error.contains("store"), "{error}");
    let text = said(&stage, &format!("list {}", daemon.address));
    assert!(text.contains("no_handler"), "{text}");
    let error = refused(&stage, "list --config greenroom.yaml");
    assert!(error.contains("one JSON object per line"), "{error}");
    assert!(refused(&stage, "replay 17").contains("--id 17"));
    drop(daemon);
}

#[test]
fn d06_masked_places_are_shown_to_the_owner_only() {
    let stage = letters(1);
    stage.write("greenroom.yaml", config(", mask: [/data/card]").replace("path: in", "path: in2"));
    stage.write("in2", "");
    stage.run();
    for command in ["show 1", "export"] {
        let shown = said(&stage, &format!("{command} --store letters"));
        assert!(shown.contains("***") && !shown.contains("4711"), "{shown}");
        let shown = said(&stage, &format!("{command} --store letters --unmasked"));
        assert!(shown.contains("4711"), "{shown}");
    }
    said(&stage, "edit 1 --store letters --set /data/n=5");
    assert!(said(&stage, "show 1 --store letters --unmasked").contains("4711"));
}

#[test]
fn d06_masked_values_are_in_no_error_where_that_is_asked_for() {
    let stage = Stage::with(&config(", mask: [/data/card], mask_errors: true"));
    stage.write("worker.py", WORKER.replace("503 after", "no card 4711 0815: 503 after"));
    let data = json!({ "n": 1, "card": "4711 0815" });
    stage.write_events("in", &[event("e0", "test.happened", "k", data)]);
    let run = stage.run();
    assert_eq!(run.report()["dead_lettered"], 1, "{}", run.stderr);
    assert!(run.stderr.contains("no card ***: 503") && !run.stderr.contains("0815"), "{run:?}");
    let list = said(&stage, "list --store letters --json");
    assert!(list.contains("no card ***: 503"), "{list}");
    let shown = said(&stage, "show 1 --store letters --unmasked --json");
    assert!(shown.contains("no card ***: 503") && shown.contains("4711 0815"), "{shown}");
}

#[test]
fn c04_a_letter_that_a_mask_hides_in_part_is_edited_whole_and_by_its_owner_only() {
    let masked = config(", mask: [/data/items/*/iban]");
    let stage = Stage::with(&masked);
    stage.write("worker.py", WORKER);
    let data = r#"{"z":123456789012345678901234567890,"items":[{"name":"anna","iban":1.0},{"name":"bob","iban":0.12345678901234567890123}],"s":"\ud800","a":1}"#;
    let head = r#""specversion":"1.0","id":"1","source":"/s","type":"test.happened","subject":"k""#;
    let plain = event("plain", "test.happened", "other", json!({ "n": 1 }));
    stage.write("in", format!("{{{head},\"data\":{data}}}\n{plain}\n{{broken\n"));
    assert_eq!(stage.run().report()["dead_lettered"], 3);
    let [hidden, raw, plain] = ["--event 1", "--reason malformed", "--event plain"].map(|filter| {
        let page = listed(&stage, &format!("--store letters {filter}"));
        page["letters"][0]["number"].as_u64().unwrap()
    });
    let daemon_config = masked
        .replace("file: { path: in }", "generator: { rate: 1/s, types: [o] }")
        + "no_handler: ignore\nadmin: { listen: 127.0.0.1:0 }\n";
    stage.write("greenroom.yaml", daemon_config);
    let daemon = Daemon::start(&stage);
    let at = &daemon.address;
    for number in [hidden, raw] {
        let path = format!("/api/dead-letters/{number}/edit");
        for (status, body) in [daemon.get(&path), daemon.post(&format!("{path}?set=/data/a=2"))] {
            assert_eq!(status, 403, "{body}");
            let error = &body["error"];
            assert!(error["what"].as_str().unwrap().contains("the mask of the store"), "{body}");
            assert!(error["next"].as_str().unwrap().contains("--store DIR"), "{body}");
        }
        let error = refused(&stage, &format!("edit {number} {at} --set /data/a=2"));
        assert!(error.contains("--store DIR"), "{error}");
    }
    said(&stage, &format!("edit {plain} {at} --set /data/n=2"));
    assert_eq!(daemon.get(&format!("/api/dead-letters/{plain}/edit")).1["data"]["n"], 2);
    drop(daemon);
    said(&stage, &format!("edit {hidden} --store letters --set /data/a=2"));
    let editor = "import sys; path = sys.argv[1]; text = open(path).read(); \
                  start, end = text.index('{', text.index('[')), text.index('}') + 1; \
                  open(path, 'w').write(text[:start] + text[text.index('{', end):])";
    stage.write("editor.py", editor);
    let edited = stage
        .command(&format!("dead-letters edit {hidden} --store letters"))
        .env("EDITOR", "python3 editor.py")
        .env_remove("VISUAL")
        .output()
        .unwrap();
    assert!(edited.status.success(), "{edited:?}");
    let shown = said(&stage, &format!("show {hidden} --store letters --unmasked --json"));
    let shown: String = shown.split_whitespace().collect();
    let edited = data.replace(r#"{"name":"anna","iban":1.0},"#, "").replace(r#""a":1"#, r#""a":2"#);
    assert!(shown.contains(&edited) && shown.contains(data), "{shown}");
}

#[test]
fn d06_a_second_daemon_and_a_bad_path_are_refused_in_words() {
    let stage = letters(1);
    stage.write(
        "greenroom.yaml",
        config("")
            .replace("exec: { command: [python3, worker.py] }", "drop:")
            .replace("file: { path: in }", "generator: { rate: 1/s, types: [other] }")
            + "no_handler: ignore\nadmin: { listen: 127.0.0.1:0 }\n",
    );
    let daemon = Daemon::start(&stage);
    let second = stage.run();
    assert_eq!(second.code, 1, "{second:?}");
    assert!(
        second.stderr.contains("dead_letters.store: letters:")
            && second.stderr.contains("writes it"),
        "{}",
        second.stderr
    );
    drop(daemon);
    for (path, expected) in [("no/such/dir", "create the directory"), ("in", "not a directory")] {
        stage
            .write("greenroom.yaml", config("").replace("path: letters", &format!("path: {path}")));
        let run = stage.run();
        assert!(run.code == 2 && run.stderr.contains(expected), "{run:?}");
    }
    let both = config("").replace("dead_letters: {", "dead_letters: { file: { path: x },");
    stage.write("greenroom.yaml", both);
    assert!(stage.run().stderr.contains("one place"), "both are refused");
    let output = ask(&stage, "drop --all --yes --store nowhere");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("there is no store of dead letters"),
        "{output:?}"
    );
    assert!(!stage.path("nowhere").exists(), "nothing is made by a path that was mistyped");
}

/// Killed in the middle of replays, again and again: each letter is handled at least once, and
/// repeated no more often than the start says.
#[test]
fn c04_a_kill_in_the_middle_of_a_replay_loses_no_letter() {
    let stage = Stage::with(&config(""));
    stage.write("worker.py", WORKER);
    let data = |n| json!({ "n": n, "slow": 0.01 });
    let events: Vec<_> = (0..60)
        .map(|n| event(&format!("e{n}"), "test.happened", &format!("k{}", n % 5), data(n)))
        .collect();
    stage.write("in", lines(&events));
    assert_eq!(stage.run().report()["dead_lettered"], 60);
    let text = said(&stage, "list --store letters");
    assert!(!text.contains('\u{1b}'), "an error steers no terminal");
    stage.write("in", "");
    stage.write("mended", "");
    said(&stage, "replay --store letters --all");
    let handled = || -> Vec<String> {
        let text = fs::read_to_string(stage.path("handled")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let mut at_most = 0;
    for killed_at in [7, 25] {
        let mut child = stage.start("");
        wait(|| (handled().len() >= killed_at).then_some(()));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        at_most += told(&output);
    }
    let started = std::time::Instant::now();
    let last = stage.command("run greenroom.yaml --report json").output().unwrap();
    at_most += told(&last);
    let run = Run::of(last, started);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(listed(&stage, "--store letters")["totals"]["letters"], 0);
    let all = handled();
    let once: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(once.len(), 60, "none is lost");
    assert!(
        at_most > 0 && all.len() - 60 <= at_most,
        "{} repeated, {at_most} told",
        all.len() - 60
    );
}

/// How many replays a start has said may be repeated.
fn told(output: &Output) -> usize {
    let log = String::from_utf8_lossy(&output.stderr);
    let Some((_, rest)) = log.split_once("at_most=") else { return 0 };
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn c04_malformed_bytes_are_edited_into_an_event_with_an_editor() {
    let stage = Stage::with(&config(""));
    stage.write("worker.py", WORKER);
    stage.write("in", "{broken\n");
    stage.run();
    let text = said(&stage, "replay --store letters --all");
    assert!(text.contains("1 letter without an event left out"), "{text}");
    let event = event("mended", "test.happened", "k", json!({}));
    stage.write("mend", format!("#!/bin/sh\ncat > \"$1\" <<'E'\n{event}\nE\n"));
    let edit = |editor: &str| {
        let mut command = stage.command("dead-letters edit 1 --store letters");
        command.env_remove("VISUAL").env("EDITOR", editor).output().unwrap()
    };
    let output = edit("true");
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing was changed"), "{output:?}");
    assert!(!edit("false").status.success());
    assert!(edit("sh mend").status.success());
    let shown: Value = serde_json::from_str(&said(&stage, "show 1 --store letters")).unwrap();
    assert_eq!(
        (&shown["event"]["id"], &shown["raw_base64"]),
        (&json!("mended"), &json!("e2Jyb2tlbg=="))
    );
    let mut piped = stage.command("dead-letters edit 1 --store letters --file -");
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn d14_a_deduplication_with_a_store_remembers_over_a_restart() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
handlers: { h: { on: test.happened, pass: , layers: [{ deduplication: { within: 1h, store: seen } }] } }
outputs: { done: { file: { path: done } } }
",
    );
    let events: Vec<_> =
        (0..50).map(|n| event(&format!("e{n}"), "test.happened", "k", json!(n))).collect();
    stage.write_events("in", &events);
    for _ in 0..3 {
        stage.run().counted(0, [50, 50, 0, 0]);
        assert_eq!(stage.read("done").len(), 50, "each was handled once");
    }
    stage.write("in", lines(&[event("new", "test.happened", "k", json!(1))]));
    stage.run();
    assert_eq!(stage.read("done").len(), 51);
}

/// Ids are written a little after their events are done. What a kill costs is that some are handled
/// again; never that one counts as seen and was not handled.
#[test]
fn d14_after_kill_9_nothing_counts_as_seen_that_was_not_handled() {
    const EVENTS: usize = 20_000;
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 16 } }
handlers:
  h:
    on: '**'
    simulate: { latency: 0ms..4ms }
    layers: [{ deduplication: { within: 1h, store: seen } }]
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let events: Vec<_> =
        (0..EVENTS).map(|n| event(&format!("e{n}"), "test.happened", "k", json!(n))).collect();
    stage.write_events("in", &events);
    let mut before = 0;
    for kill in 1..=4 {
        let daemon = Daemon::start(&stage);
        // Only what the runs before have not done brings new lines.
        wait(|| (stage.count_lines("done") >= before + 1_000).then_some(()));
        daemon.signal(Signal::KILL);
        drop(daemon);
        let done = stage.count_lines("done");
        assert!(done < EVENTS, "kill {kill} came after the end");
        before = done;
    }
    drop(stage.run());
    let mut handled = std::collections::BTreeMap::new();
    for event in stage.read("done") {
        *handled.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(handled.len(), EVENTS, "all of them");
    let repeated: usize = handled.values().map(|times| times - 1).sum();
    assert!(
        repeated < EVENTS / 4,
        "{repeated} were handled again, of some 4,000 done before a kill"
    );
}

#[test]
fn c04_a_mask_is_no_value_of_set() {
    let stage = letters(1);
    stage.write("greenroom.yaml", config(", mask: [/data/card]"));
    assert_eq!(stage.run().code, 0);
    let copied = event("1", "test.happened", "k", json!({ "card": "***" }));
    stage.write("event.json", copied.to_string());
    for change in ["--set /data/card=***", "--file event.json"] {
        let error = refused(&stage, &format!("edit 1 --store letters {change}"));
        assert!(error.contains("that the mask of the store hides"), "{error}");
    }
    let shown = said(&stage, "show 1 --store letters --unmasked");
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["event"]["data"]["card"], "4711");
    said(&stage, "edit 1 --store letters --set /data/card=12 --set /data/n=8");
    let shown = said(&stage, "show 1 --store letters --unmasked");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["event"]["data"], json!({ "n": 8, "card": 12 }));
}

/// One that was killed has left it, empty; the next that ends in order clears it away.
#[test]
fn d06_an_empty_file_of_dead_letters_that_a_kill_has_left_goes_with_the_next_run() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in, follow: true } } }
handlers: { h: { on: '**', pass: } }
admin: { listen: 127.0.0.1:0 }
",
    );
    stage.write("in", "");
    let daemon = Daemon::start(&stage);
    daemon.signal(Signal::KILL);
    drop(daemon);
    assert_eq!(fs::read(stage.path("dead-letters.ndjson")).unwrap(), b"");
    let daemon = Daemon::start(&stage);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().code, 0);
    assert!(!stage.path("dead-letters.ndjson").exists());
}

/// The disk is full of letters, and of their journal.
#[test]
fn d06_a_store_that_filled_its_own_disk_starts_again_and_its_letters_can_be_dropped() {
    let config = mended("")
        .replace("path: in", "path: in, follow: true")
        .replace("path: letters", "path: disk/letters");
    let stage = Stage::with(&(config + "admin: { listen: 127.0.0.1:0 }\n"));
    fs::create_dir(stage.path("disk")).unwrap();
    let Some(disk) = SmallDisk::mount(&stage.path("disk"), 26) else { return };
    let nonsense = |count| format!("no event {}\n", "x".repeat(10_000)).repeat(count);
    stage.write("in", nonsense(3_000));
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
        // Each but the first finds the disk full.
        let daemon = disk.daemon(&stage);
        wait(|| daemon.log().contains("dead letters cannot be stored").then_some(()));
        assert_eq!(daemon.get("/healthz").1["health"], "red");
        daemon.signal(signal);
        if signal == Signal::TERM {
            daemon.ended();
        }
    }
    let said = |arguments: &str| {
        let output = disk.command(&stage, arguments).stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let count = || {
        let list = said("dead-letters list --store disk/letters --json");
        serde_json::from_str::<Value>(&list).unwrap()["totals"]["letters"].as_u64().unwrap()
    };
    let compacted = || {
        said("store compact disk/letters");
        fs::metadata(disk.path().join("letters/letters.db")).unwrap().len()
    };
    let stored = count();
    assert!(stored > 900, "{stored}");
    // What is left has all but filled the disk.
    let dropped = said("dead-letters drop --store disk/letters --id 1 --id 2 --yes");
    assert_eq!(dropped, "2 letters were dropped\n");
    let before = compacted();
    let dropped = said("dead-letters drop --store disk/letters --all --yes");
    assert_eq!(dropped, format!("{} letters were dropped\n", stored - 2));
    let after = compacted();
    assert!(after < before / 20, "{before} {after}");
    stage.write("in", nonsense(5));
    let daemon = disk.daemon(&stage);
    wait(|| (count() == 5).then_some(()));
    assert_eq!(daemon.get("/healthz").1["headline"], "Dead letters are coming in");
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [5, 0, 5, 0]);
    for name in ["reserve", "reserve-journal"] {
        let reserve = fs::metadata(disk.path().join("letters").join(name)).unwrap();
        assert_eq!(reserve.len(), 8 << 20, "{name} is kept again");
    }
}
