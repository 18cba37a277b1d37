//! What bounds and shares out the work of a pool, as its configuration says.

use serde_json::json;

use crate::{daemon::Daemon, stage::Stage};

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
    assert!(answer["left"][0]["why"].as_str().unwrap().contains("start it anew"), "{answer}");
    let run = daemon.stop();
    assert_eq!(run.report()["dead_lettered"], 0, "{run:?}");
}
