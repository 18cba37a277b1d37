//! The scenarios that every release passes (Z), on a broker: `filled` puts events into it.
//! Z01, Z02, Z03, Z07, Z08, Z11 to Z13 are beside the sources.

use std::{
    collections::HashSet,
    fs,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    daemon::{Daemon, wait},
    faketime,
    order::{Repeats, assert_all_in_order},
    server::{Answer, Request, Server},
    stage::{Stage, event, events},
};

/// An input with these events, and the rest. Nothing where no broker is named.
fn stage(name: &str, events: &[Value], rest: &str) -> Option<Stage> {
    let input = super::filled(name, events)?;
    Some(Stage::with(&format!(
        "
inputs: {{ in: {input} }}
outputs: {{ done: {{ file: {{ path: done }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
{rest}"
    )))
}

fn asks(server: &Server, more: &str) -> String {
    let url = &server.url;
    format!(
        "handlers: {{ h: {{ on: '**', order_by: subject, http: {{ url: '{url}', pass: true }}{more} }} }}\n"
    )
}

fn wait_for_lines(stage: &Stage, lines: usize) {
    wait(|| (stage.count_lines("done") >= lines).then_some(()));
}

fn subject(request: &Request) -> &str {
    request.header("ce-subject").unwrap()
}

#[test]
fn z04_a_slow_key_holds_up_no_other_key_of_its_partition() {
    let key = |n: usize| if n % 20 == 3 { "slow".to_owned() } else { format!("k{}", n % 19) };
    let all: Vec<_> = (0..1_000).map(|n| event(&format!("e{n}"), "t", &key(n), json!(n))).collect();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let opens = gate.clone();
    let server = Server::start(move |_, request| {
        if subject(request) == "slow" {
            let (is_open, opened) = &*gate;
            drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        }
        Answer::Status(204, "")
    });
    let rest = format!("pools: {{ default: {{ workers: 8 }} }}\n{}", asks(&server, ""));
    let Some(stage) = stage("slow", &all, &rest) else { return };
    let daemon = Daemon::start(&stage);
    wait_for_lines(&stage, 950);
    let slow = stage.read("done").into_iter().filter(|done| done["subject"] == "slow").count();
    assert_eq!((slow, stage.count_lines("done")), (0, 950), "its first event is in hand");
    *opens.0.lock().unwrap() = true;
    opens.1.notify_all();
    wait_for_lines(&stage, 1_000);
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [1_000, 1_000, 0, 0]);
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

#[test]
fn z05_a_hot_key_takes_a_quarter_longer_than_it_must_at_most() {
    const WORK: Duration = Duration::from_millis(100);
    const HOT: usize = 20;
    // The hottest key is half of what eleven workers have to do otherwise.
    let key =
        |n: usize| if n.is_multiple_of(5) { "hot".to_owned() } else { format!("k{}", n % 23) };
    let all: Vec<_> =
        (0..5 * HOT).map(|n| event(&format!("e{n}"), "t", &key(n), json!(n))).collect();
    let mut ratios = Vec::new();
    // A machine that is busy makes a round late, and no round early.
    for _ in 0..3 {
        let began = Arc::new(Mutex::new(None));
        let first = began.clone();
        let server = Server::start(move |_, _| {
            first.lock().unwrap().get_or_insert_with(Instant::now);
            thread::sleep(WORK);
            Answer::Status(204, "")
        });
        let rest = format!("pools: {{ default: {{ workers: 12 }} }}\n{}", asks(&server, ""));
        let Some(stage) = stage("hot", &all, &rest) else { return };
        let daemon = Daemon::start(&stage);
        wait_for_lines(&stage, all.len());
        let took = began.lock().unwrap().unwrap().elapsed();
        daemon.signal(Signal::TERM);
        daemon.ended().counted(0, [all.len() as u64, all.len() as u64, 0, 0]);
        assert_all_in_order(&all, &stage.read("done"), Repeats::None);
        ratios.push(took.as_secs_f64() / (WORK * HOT as u32).as_secs_f64());
        if ratios.last().is_some_and(|ratio| *ratio <= 1.25) {
            return;
        }
    }
    panic!("{ratios:?}");
}

#[test]
fn z06_in_an_outage_nothing_is_given_up_and_all_goes_on_after_it() {
    let all = events(500);
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let server = Server::start(move |_, _| match up.load(Ordering::SeqCst) {
        true => Answer::Status(204, ""),
        false => Answer::Status(503, ""),
    });
    let more = ", retry: { attempts: 3, backoff: 5ms..20ms }";
    let rest = format!(
        "pools: {{ default: {{ workers: 8, limit: {{ adaptive: {{ min: 1, max: 8 }} }} }} }}\n{}",
        asks(&server, more)
    );
    let Some(stage) = stage("outage", &all, &rest) else { return };
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/handlers/h", |handler| handler["state"] == "outage");
    let asked = server.requests.lock().unwrap().len();
    // Only time can show that there is no storm: one event probes at a time.
    thread::sleep(Duration::from_secs(2));
    let meanwhile = server.requests.lock().unwrap().len() - asked;
    assert!(meanwhile < 100, "{meanwhile} requests in two seconds of an outage");
    is_up.store(true, Ordering::SeqCst);
    let up = Instant::now();
    wait_for_lines(&stage, all.len());
    assert!(up.elapsed() < Duration::from_secs(20), "{:?}", up.elapsed());
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [500, 500, 0, 0]);
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

#[test]
fn z09_a_stop_under_load_ends_by_its_deadline_and_the_broker_has_what_was_left() {
    const EVENTS: usize = 10_000;
    let key = |n: usize| if n == 17 { "stuck".to_owned() } else { format!("k{}", n % 500) };
    let all: Vec<_> =
        (0..EVENTS).map(|n| event(&format!("e{n}"), "t", &key(n), json!(n))).collect();
    let (is_stuck, is_met) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let (stuck, met) = (is_stuck.clone(), is_met.clone());
    let server = Server::start(move |_, request| {
        if subject(request) == "stuck" && stuck.load(Ordering::SeqCst) {
            met.store(true, Ordering::SeqCst);
            return Answer::Never;
        }
        thread::sleep(Duration::from_millis(2));
        Answer::Status(204, "")
    });
    let rest = format!(
        "pools: {{ default: {{ workers: 8 }} }}\nshutdown: {{ deadline: 2s }}\n{}",
        asks(&server, "")
    );
    let Some(stage) = stage("stop", &all, &rest) else { return };
    let daemon = Daemon::start(&stage);
    // Which partition is read first is the broker's choice.
    wait(|| is_met.load(Ordering::SeqCst).then_some(()));
    wait_for_lines(&stage, 200);
    let asked = Instant::now();
    daemon.signal(Signal::TERM);
    let run = daemon.ended();
    let took = asked.elapsed();
    assert_eq!(run.code, 3, "{run:?}");
    // A second more than the deadline is promised, and the last commit takes its time.
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(stage.count_lines("done") < EVENTS, "something is left");
    is_stuck.store(false, Ordering::SeqCst);
    let daemon = Daemon::start(&stage);
    let ids = || {
        let done = stage.read("done");
        let ids = done.iter().map(|event| event["id"].as_str().unwrap().to_owned());
        ids.collect::<HashSet<_>>().len()
    };
    wait(|| (ids() == EVENTS).then_some(()));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().code, 0);
    assert_all_in_order(&all, &stage.read("done"), Repeats::Allowed);
}

/// The wall clock jumps by an hour, forwards and back, while events fail and are tried again.
#[test]
fn z10_a_jump_of_the_wall_clock_holds_up_nothing_and_makes_no_storm() {
    let Some(library) = faketime::library() else { return };
    let all = events(1_200);
    let rest = "
pools: { default: { workers: 8 } }
handlers:
  h:
    on: '**'
    order_by: subject
    simulate: { latency: 2ms..4ms, failures: 0.2, seed: 1 }
    retry: { attempts: 1000, backoff: 5ms..20ms }
outage: { failures: 1000000, window: 1h }
";
    let Some(stage) = stage("clock", &all, rest) else { return };
    let clock = stage.path("clock");
    fs::write(&clock, "+0").unwrap();
    let daemon = Daemon::start_with(&stage, |command| faketime::set(command, &library, &clock));
    for (lines, jump) in [(200, "+3600"), (500, "-3600"), (800, "+0")] {
        wait_for_lines(&stage, lines);
        fs::write(stage.path("next"), jump).unwrap();
        fs::rename(stage.path("next"), &clock).unwrap();
    }
    wait_for_lines(&stage, all.len());
    daemon.signal(Signal::TERM);
    let report = daemon.ended().counted(0, [1_200, 1_200, 0, 0]);
    // A fifth fails, of those a fifth again, and so on: a quarter as many as there are, and chance.
    let retried = report["retried"].as_u64().unwrap();
    assert!((150..600).contains(&retried), "{retried} further attempts");
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}
