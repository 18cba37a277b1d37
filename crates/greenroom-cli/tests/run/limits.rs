//! What bounds and shares out the work of a pool, as its configuration says.

use serde_json::json;

use crate::run::{daemon::Daemon, stage::Stage};

/// A daemon's configuration with a pool of these settings, and so many events a second.
fn config(pool: &str, rate: u32, handler: &str) -> String {
    format!(
        "
inputs: {{ g: {{ generator: {{ rate: {rate}/s, keys: 1000, zipf: 0 }} }} }}
pools: {{ p: {{ {pool} }} }}
handlers: {{ all: {{ on: '**', pool: p, {handler} }} }}
admin: {{ listen: 127.0.0.1:0 }}
shutdown: {{ deadline: 1s }}
"
    )
}

#[test]
fn r06_a_weight_holds_from_the_start_and_is_left_by_a_reload() {
    let text = config("workers: 2, weight: 3", 100, "pass: {}");
    let stage = Stage::with(&text);
    let daemon = Daemon::start(&stage);
    assert_eq!(daemon.get("/api/pools/p").1["settings"]["weight"], 3);
    assert_eq!(daemon.get("/api/pools/default").1["settings"]["weight"], json!(null));
    stage.write("greenroom.yaml", text.replace("weight: 3", "weight: 4"));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!([]), "{answer}");
    assert_eq!(answer["left"][0]["what"], "pools.p.weight", "{answer}");
    assert!(answer["left"][0]["why"].as_str().unwrap().contains("start it again"), "{answer}");
    let run = daemon.stop();
    assert_eq!(run.report()["dead_lettered"], 0, "{run:?}");
}

#[test]
fn r06_an_adaptive_limit_begins_where_it_is_told_and_is_left_by_a_reload() {
    let pool = "workers: 8, limit: { adaptive: { max: 8, initial: 3 } }";
    let text = config(pool, 50, "pass: {}");
    let stage = Stage::with(&text);
    let daemon = Daemon::start(&stage);
    assert_eq!(daemon.get("/api/pools/p").1["limit"], 3);
    for (to, what) in [
        (text.replace("initial: 3", "initial: 4"), "pools.p.limit.adaptive"),
        (text.replace("{ adaptive: { max: 8, initial: 3 } }", "5"), "pools.p.limit"),
    ] {
        stage.write("greenroom.yaml", to);
        let answer = daemon.post("/api/reload").1;
        assert_eq!(answer["changed"], json!([]), "{answer}");
        assert_eq!(answer["left"][0]["what"], what, "{answer}");
    }
    daemon.stop().report();
}

#[test]
fn r06_an_adaptive_limit_finds_out_what_a_target_bears() {
    // As many as there are workers fail at a time: what is let through
    // shrinks to the smallest limit.
    let pool = "workers: 32, limit: { adaptive: { max: 32, initial: 32, window: 50ms } }";
    let handler = "retry: { attempts: 1 }, simulate: { latency: 5ms..5ms, failures: 1 }";
    let outage = "outage: { failures: 1_000_000, window: 1h }";
    let stage = Stage::with(&format!("{}{outage}\n", config(pool, 2_000, handler)));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/p", |pool| pool["limit"].as_u64().unwrap() < 32);
    daemon.stop().report();
}

#[test]
fn r06_a_pool_that_scales_gets_the_workers_that_it_needs() {
    // 100 a second of 50 ms each are five workers' work.
    let pool = "autoscale: { max: 20, up_cooldown: 1s }";
    let text = config(pool, 100, "simulate: { latency: 50ms..50ms, failures: 0 }");
    let stage = Stage::with(&text);
    let daemon = Daemon::start(&stage);
    assert_eq!(daemon.get("/api/pools/p").1["settings"]["workers"], 1);
    daemon.wait_for("/api/pools/p", |pool| pool["live"].as_u64().unwrap() >= 5);
    assert!(daemon.get("/api/pools/p").1["live"].as_u64().unwrap() <= 20);
    stage.write("greenroom.yaml", text.replace("max: 20", "max: 30"));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["left"][0]["what"], "pools.p.autoscale", "{answer}");
    daemon.stop().report();
}

#[cfg(target_os = "linux")]
#[test]
fn p30_a_pool_has_threads_of_its_own() {
    let text = config("workers: 4, dedicated_threads: 3", 50, "pass: {}");
    let stage = Stage::with(&text.replace("p: {", "crunch: {").replace("pool: p", "pool: crunch"));
    let daemon = Daemon::start(&stage);
    let tasks = format!("/proc/{}/task", daemon.pid());
    let names = || {
        let tasks = std::fs::read_dir(&tasks).unwrap();
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks.filter_map(name).filter(|name| name.trim() == "crunch").count()
    };
    crate::run::daemon::wait(|| (names() == 3).then_some(()));
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > 10);
    daemon.stop().report();
}
