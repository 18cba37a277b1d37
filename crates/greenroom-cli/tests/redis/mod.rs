//! `greenroom run` with a real Redis server. Without a server it says so, and how to have one.

use std::{
    collections::HashMap,
    env,
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    server::{Answer, Server},
    stage::{Run, Stage, event},
};

/// The server, where one is named. Otherwise it is said that nothing was tested.
fn address(test: &str) -> Option<String> {
    let address = env::var("GREENROOM_REDIS").ok().filter(|address| !address.is_empty());
    if address.is_none() {
        // Past the capture of test output.
        let _ = writeln!(
            io::stderr(),
            "{test}: NOT RUN, for want of a Redis server: scripts/redis up 6380; \
             GREENROOM_REDIS=127.0.0.1:6380 cargo test -p greenroom-cli --test program redis::"
        );
    }
    address
}

/// A stream that no other run has, with these entries.
fn filled(address: &str, entries: &[Vec<String>]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let stream = format!("orders-{}-{now}", process::id());
    for fields in entries {
        let mut words = vec!["XADD", &stream, "*"];
        words.extend(fields.iter().map(String::as_str));
        assert!(ask(address, &words).starts_with('$'));
    }
    stream
}

/// The first line of the answer.
fn ask(address: &str, words: &[&str]) -> String {
    let mut server = TcpStream::connect(address).unwrap();
    let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let command = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
    server.write_all(command.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(server).read_line(&mut answer).unwrap();
    answer
}

/// An input, with more among its own options and beside them.
fn input(address: &str, stream: &str, own: &str, beside: &str) -> String {
    format!(
        "{{ redis: {{ url: 'redis://{address}', stream: {stream}, group: billing, consumer: one{own} }}{beside} }}"
    )
}

#[test]
fn n01_events_go_by_key_from_a_stream_to_a_service_and_are_acknowledged() {
    let Some(address) = address("n01_events") else { return };
    let made = |n: usize| {
        let data = json!({ "n": n / 20 });
        let event = event(&format!("e{n}"), "order.placed", &format!("k{}", n % 20), data);
        vec!["data".to_owned(), event.to_string()]
    };
    let entries: Vec<_> = (0..200).map(made).collect();
    let stream = filled(&address, &entries);
    let server = Server::start(|_, _| Answer::Status(204, ""));
    let stage = Stage::with(&format!(
        "
inputs: {{ in: {} }}
pools: {{ default: {{ workers: 16, queue: 100 }} }}
handlers: {{ orders: {{ on: 'order.*', order_by: subject, http: {{ url: '{}', pass: true }} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        input(&address, &stream, "", ""),
        server.url
    ));
    let looked = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let looked = String::from_utf8([looked.stdout, looked.stderr].concat()).unwrap();
    assert!(looked.contains("200 events"), "{looked}");
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 200);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [200, 200, 0, 0]);
    assert_eq!(ask(&address, &["XPENDING", &stream, "billing", "-", "+", "9"]), "*0\r\n");
    let mut last = HashMap::new();
    for request in server.requests.lock().unwrap().iter() {
        let data: Value = serde_json::from_slice(&request.body).unwrap();
        let key = request.header("ce-subject").unwrap().to_owned();
        let before = last.insert(key, data["n"].as_u64().unwrap());
        assert!(before.is_none_or(|before| before < data["n"].as_u64().unwrap()));
    }
    assert_eq!(last.len(), 20);
}

#[test]
fn m05_fields_of_entries_become_events_by_a_rule() {
    let Some(address) = address("m05_records") else { return };
    let entry = ["customer", "7", "total", "12"].map(str::to_owned).to_vec();
    let stream = filled(&address, &[entry]);
    let rule = ", records: { type: order.placed, source: { topic: {} }, subject: { key: {} }, \
                extensions: { total: { pointer: /total } } }";
    let input = input(&address, &stream, ", key: { field: customer }", rule);
    let stage = Stage::with(&format!(
        "
inputs: {{ in: {input} }}
handlers: {{ all: {{ on: '**', order_by: partitionkey, pass: {{}} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
"
    ));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 1);
    daemon.stop();
    let out = &stage.read("out")[0];
    assert_eq!(out["data"], json!({ "customer": "7", "total": "12" }));
    assert_eq!((&out["source"], &out["subject"]), (&json!(stream), &json!("7")));
    assert_eq!((&out["total"], &out["partitionkey"]), (&json!("12"), &json!("7")));
    assert!(out["id"].as_str().unwrap().starts_with(&format!("{stream}-")), "{out}");
}

/// It needs no server: none is there.
#[test]
fn n05_a_run_says_what_cannot_be_read_and_shows_no_password() {
    let input = input("ann:hunter2@127.0.0.1:9", "s", ", connect_within: 1ms", "");
    let stage = Stage::with(&format!(
        "inputs: {{ in: {input} }}\nhandlers: {{ all: {{ on: '**', drop: {{}} }} }}\n"
    ));
    for arguments in ["run greenroom.yaml", "run greenroom.yaml --dry-run"] {
        let started = std::time::Instant::now();
        let run = Run::of(stage.command(arguments).output().unwrap(), started);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("is a Redis server running there?"), "{run:?}");
        assert!(run.stderr.contains("input `in`") && !run.stderr.contains("hunter2"), "{run:?}");
    }
}
