//! What version 0.1.0 has left opens with this one, and goes on where that ended (B01, B03, D06).
//!
//! The files in `kept` were made by it: a log, a store of dead letters, and each form of the
//! checkpoints of files. Of each input one event was not done when it was killed; one of three
//! letters was edited, and one marked for a replay. A checkpoint names its file by path and inode,
//! which are put in here.

use std::{fs, io::Read, os::unix::fs::MetadataExt};

use flate2::{Crc, read::GzDecoder};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    stage::Stage,
};

const CONFIG: &str = "
inputs:
  posts: { http: { listen: '127.0.0.1:0', store: events, retention: { size: 8MiB } } }
  one: { file: { path: one.ndjson, checkpoint: one.checkpoint } }
  several: { file: { path: 'set/*.ndjson', checkpoint: several.checkpoint } }
  tail: { file: { path: tail.ndjson, follow: true, checkpoint: tail.checkpoint } }
handlers:
  bad: { on: bad, pass: }
  rest: { on: [held, fine], pass: }
outputs: { done: { file: { path: done } } }
dead_letters: { store: { path: letters, mask: [/data/card] } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 20s }
";

/// A directory as version 0.1.0 has left it.
fn left_by_0_1_0() -> Stage {
    let stage = Stage::with(CONFIG);
    for directory in ["events", "events/consumers", "letters", "set"] {
        fs::create_dir(stage.path(directory)).unwrap();
    }
    let segment = unpacked(include_bytes!("kept/log.segment.gz"));
    stage.write("events/00000000000000000001.segment", segment);
    let consumer = include_str!("kept/consumer.checkpoint");
    stage.write("events/consumers/greenroom.checkpoint", consumer);
    stage.write("letters/letters.db", unpacked(include_bytes!("kept/letters.db.gz")));
    stage.write("one.ndjson", include_str!("kept/one.ndjson"));
    stage.write("set/a.ndjson", include_str!("kept/a.ndjson"));
    stage.write("set/b.ndjson", include_str!("kept/b.ndjson"));
    stage.write("tail.ndjson", include_str!("kept/tail.ndjson"));
    stage.write("one.checkpoint", in_place(&stage, include_str!("kept/one.checkpoint")));
    stage.write("several.checkpoint", in_place(&stage, include_str!("kept/several.checkpoint")));
    stage.write("tail.checkpoint", in_place(&stage, include_str!("kept/tail.checkpoint")));
    stage
}

fn unpacked(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A checkpoint of the files of this stage, with its checksum.
fn in_place(stage: &Stage, checkpoint: &str) -> String {
    let mut text = checkpoint.replace("{directory}/", &stage.path("").display().to_string());
    for file in ["one.ndjson", "set/a.ndjson", "set/b.ndjson", "tail.ndjson"] {
        let inode = fs::metadata(stage.path(file)).unwrap().ino();
        text = text.replace(&format!("{{{file}}}"), &inode.to_string());
    }
    let (head, of) = text.split_once(r#","of":"#).unwrap();
    let (head, _) = head.split_once(r#""crc32":"#).unwrap();
    let of = of.trim_end().strip_suffix('}').unwrap();
    let mut crc = Crc::new();
    crc.update(of.as_bytes());
    format!("{head}\"crc32\":\"{:08x}\",\"of\":{of}}}\n", crc.sum())
}

fn said(stage: &Stage, command: &str) -> String {
    let output = stage.command(command).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn b01_b03_d06_what_version_0_1_0_has_left_opens_and_goes_on() {
    let stage = left_by_0_1_0();
    let checked = said(&stage, "store check events");
    assert!(checked.contains("a log of 12 events in 1 segment"), "{checked}");
    assert!(checked.contains("done before event 5, 7 done beyond it"), "{checked}");
    assert_eq!(said(&stage, "store export events").lines().count(), 12);
    assert!(said(&stage, "store check letters").contains("every page is intact"));
    let edited = said(&stage, "dead-letters show 2 --store letters --json");
    let edited: Value = serde_json::from_str(&edited).unwrap();
    let data = |event: &str| edited[event]["data"].clone();
    assert_eq!(data("event"), json!({ "n": "seven", "card": "***" }));
    assert_eq!(data("original"), json!({ "n": 5, "card": "***" }));

    let daemon = Daemon::start(&stage);
    // What was open, and the letter that was marked.
    wait(|| (stage.count_lines("done") >= 5).then_some(()));
    daemon.signal(Signal::TERM);
    let run = daemon.ended();
    assert_eq!(run.code, 0, "{run:?}");
    let mut done: Vec<_> = stage.read("done").iter().map(|event| event["id"].clone()).collect();
    done.sort_by_key(Value::to_string);
    assert_eq!(done, ["b-3", "one-2", "post-4", "post-7", "tail-1"]);
    let listed = said(&stage, "dead-letters list --store letters --json");
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["totals"]["letters"], 2);
}
