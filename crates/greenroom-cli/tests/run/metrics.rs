//! `/metrics`: what a running greenroom counts, as a scrape gets it.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::json;

use crate::run::{
    daemon::{Daemon, wait},
    scrape::{Scrape, scraped},
    stage::{Stage, event, events},
};

const FLOW: &str = "
inputs: { g: { generator: { rate: 2000/s, keys: 5000 } } }
pools: { default: { workers: 4 }, erp: { workers: 3, limit: 2 } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0, METRICS }
shutdown: { deadline: 5s }
";

fn flow(metrics: &str) -> Stage {
    Stage::with(&FLOW.replace("METRICS", metrics))
}

const OPEN_METRICS: &str =
    "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";

#[test]
fn o02_the_format_is_the_one_that_is_asked_for_and_every_metric_is_described() {
    let stage = flow("");
    let daemon = Daemon::start(&stage);
    scraped(&daemon, |scrape| {
        scrape.value("greenroom_events_settled_total{outcome=\"handled\"}") > 0.0
    });
    let classic = Scrape::of(&daemon);
    assert_eq!(classic.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!classic.text.contains("# EOF") && !classic.text.contains("# UNIT"));
    assert!(classic.text.contains("# TYPE greenroom_events_taken_total counter\n"));
    let open = Scrape::with(&daemon, OPEN_METRICS);
    assert_eq!(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.text.ends_with("\n# EOF\n"));
    assert!(open.text.contains("# TYPE greenroom_events_taken counter\n"));
    for scrape in [&classic, &open] {
        let described = |word: &str| -> BTreeSet<&str> {
            let lines = scrape.text.lines().filter_map(|line| line.strip_prefix(word));
            lines.filter_map(|line| line.split(' ').next()).collect()
        };
        let (types, helps) = (described("# TYPE "), described("# HELP "));
        assert_eq!(types, helps);
        assert!(types.len() > 50, "{types:?}");
        for series in scrape.values.keys() {
            let name = series.split('{').next().unwrap();
            let stems = ["_bucket", "_sum", "_count", "_total", ""];
            let stem = stems.iter().filter_map(|end| name.strip_suffix(end));
            assert!(stem.into_iter().any(|stem| types.contains(stem)), "{series} is not described");
        }
    }
    for unit in ["actor_pool_queue_seconds seconds", "process_resident_memory_bytes bytes"] {
        let line = format!("# UNIT {unit}\n");
        assert!(open.text.contains(&line) || !cfg!(target_os = "linux"), "{unit}");
    }
    daemon.stop();
}

#[test]
fn o03_no_series_is_of_a_key_and_workers_are_told_apart_only_by_option() {
    let sums = |metrics: &str| {
        let stage = flow(metrics);
        let daemon = Daemon::start(&stage);
        let handled = "greenroom_events_settled_total{outcome=\"handled\"}";
        let scrape = scraped(&daemon, |scrape| scrape.value(handled) > 1_000.0);
        assert!(!scrape.text.contains("key-"), "a key is a label");
        assert!(scrape.values.len() < 400, "{} series", scrape.values.len());
        let of = scrape.values.iter().filter(|(series, _)| {
            series.starts_with("actor_pool_messages_processed_total{pool=\"default\"")
        });
        let of: Vec<_> = of.map(|(series, value)| (series.clone(), *value)).collect();
        daemon.stop();
        of
    };
    let pool = sums("");
    assert_eq!(pool.len(), 2, "{pool:?}");
    let workers = sums("metrics: { per_worker: true }");
    assert_eq!(workers.len(), 8, "four workers, with success and without: {workers:?}");
    assert!(workers.iter().any(|(series, _)| series.contains("actor_id=\"default-3\"")));
    assert!(workers.iter().map(|(_, value)| value).sum::<f64>() > 0.0);
}

#[test]
fn o03_with_256_pools_the_series_are_bounded() {
    let pools: Vec<_> = (0..256).map(|n| format!("p{n}: {{ workers: 4 }}")).collect();
    let config = FLOW
        .replace("default: { workers: 4 }, erp: { workers: 3, limit: 2 }", &pools.join(", "))
        .replace(", METRICS", "")
        .replace("order_by: subject,", "order_by: subject, pool: p0,");
    let stage = Stage::with(&config);
    let daemon = Daemon::start(&stage);
    let scrape = Scrape::of(&daemon);
    let pools = scrape.values.keys().filter(|series| series.starts_with("actor_pool_inbox_size"));
    assert_eq!(pools.count(), 257);
    let per_pool = scrape.values.keys().filter(|series| series.contains("pool=\"p7\"")).count();
    assert!(per_pool < 100, "{per_pool} series of a pool");
    let others = scrape.values.len() - 257 * per_pool;
    assert!(others < 200, "{others} series beside those of pools");
    daemon.stop();
}

#[test]
fn o02_no_counter_falls_at_a_reload_whatever_comes_and_goes() {
    let stage = flow("");
    let config = FLOW.replace(", METRICS", "");
    stage.write("greenroom.yaml", &config);
    let daemon = Daemon::start(&stage);
    let taken = |scrape: &Scrape, input: &str| {
        scrape.get(&format!("greenroom_input_events_taken_total{{input=\"{input}\"}}"))
    };
    let before = scraped(&daemon, |scrape| taken(scrape, "g") > Some(500.0));
    let others = config
        .replace("inputs: { g: {", "inputs: { h: {")
        .replace(
            "outputs: { done: { file: { path: done } } }",
            "outputs: { new: { file: { path: new } } }",
        )
        .replace("workers: 4", "workers: 1");
    let mut last = before;
    for text in [&others, &config, &others] {
        stage.write("greenroom.yaml", text);
        let (status, answer) = wait(|| {
            // The name of an input is free once all that it gave is settled.
            let answer = daemon.post("/api/reload");
            answer.1["left"].as_array()?.is_empty().then_some(answer)
        });
        assert_eq!(status, 200, "{answer}");
        let input = if text.contains("h: {") { "h" } else { "g" };
        let since = taken(&last, input).unwrap_or_default();
        let now = scraped(&daemon, |scrape| taken(scrape, input) > Some(since + 100.0));
        for (series, value) in last.counters() {
            let is = now.get(series).unwrap_or_else(|| panic!("{series} is gone"));
            assert!(is >= *value, "{series} fell from {value} to {is}");
        }
        last = now;
    }
    assert!(taken(&last, "g") > Some(500.0) && taken(&last, "h") > Some(200.0));
    let outputs = ["done", "new"]
        .map(|name| last.value(&format!("greenroom_output_events_total{{output=\"{name}\"}}")));
    assert!(outputs.iter().all(|events| *events > 0.0), "{outputs:?}");
    daemon.stop();
}

/// One event, the first, is stuck for ever; what comes behind it is done, and so is one that is
/// there twice. Others fail, once, for good, or park their key.
const TROUBLE: &str = r#"
inputs: { i: { file: { path: in, checkpoint: kept, follow: true } } }
pools:
  default: { workers: 4 }
  stuck: { workers: 1 }
handlers:
  all: { on: test.happened, order_by: subject, layers: [deduplication], pass: }
  no: { on: test.no, exec: { command: [sh, -c, 'while read -r line; do echo no >&2; exit 1; done'], restart: { max: 1000 } } }
  stuck: { on: test.stuck, pool: stuck, exec: { command: [sh, -c, 'read -r line; while :; do sleep 60; done'], timeout: 1h } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0, metrics: { wedged_after: 200ms } }
shutdown: { deadline: 30s }
"#;

fn trouble() -> Stage {
    let stage = Stage::with(TROUBLE);
    let mut all = vec![event("stuck", "test.stuck", "s", json!(1))];
    all.extend(events(50));
    all.push(event("e0", "test.happened", "s0", json!(0)));
    all.push(event("other", "test.other", "s", json!(1)));
    stage.write_events("in", &all);
    stage
}

#[test]
fn o03_what_is_stuck_done_behind_it_and_given_up_is_told() {
    let stage = trouble();
    let daemon = Daemon::start(&stage);
    let oldest = "greenroom_partition_oldest_open_seconds{input=\"i\",partition=\"0\"}";
    let scrape = scraped(&daemon, |scrape| scrape.get(oldest) > Some(1.5));
    let value = |series: &str| scrape.value(series);
    assert_eq!(value("greenroom_events_taken_total"), 53.0);
    assert_eq!(value("greenroom_dead_letters_total{reason=\"no_handler\"}"), 1.0);
    assert_eq!(value("greenroom_dead_letters_total{reason=\"rejected\"}"), 0.0);
    assert_eq!(value("greenroom_duplicates_suppressed_total{handler=\"all\"}"), 1.0);
    assert_eq!(value("greenroom_partition_done_ahead{input=\"i\",partition=\"0\"}"), 52.0);
    let avoided = value("greenroom_head_of_line_avoided_seconds_total{input=\"i\"}");
    assert!(avoided > 50.0, "52 events for more than a second: {avoided}");
    assert_eq!(value("actor_pool_wedged_workers{pool=\"stuck\"}"), 1.0);
    assert_eq!(value("actor_pool_busy_ratio{pool=\"stuck\"}"), 1.0);
    assert_eq!(value("actor_pool_wedged_workers{pool=\"default\"}"), 0.0);
    assert_eq!(value("greenroom_event_residence_seconds_count"), 52.0);
    assert!(value("greenroom_input_commit_age_seconds{input=\"i\"}") < 5.0);
    assert_eq!(value("greenroom_events_out_of_order_total"), 0.0);
    daemon.stop();
}

#[test]
fn o02_a_scrape_is_answered_while_it_shuts_down() {
    let stage = trouble();
    let daemon = Daemon::start(&stage);
    scraped(&daemon, |scrape| {
        scrape.value("actor_pool_workers{pool=\"stuck\",state=\"busy\"}") > 0.0
    });
    daemon.signal(Signal::INT);
    daemon.wait_for("/readyz", |ready| ready["ready"] == false);
    for headers in ["", OPEN_METRICS] {
        let scrape = Scrape::with(&daemon, headers);
        assert!(scrape.status.contains("200"), "{}", scrape.status);
        assert_eq!(scrape.value("greenroom_events_taken_total"), 53.0);
    }
    daemon.stop();
}

#[test]
fn o02_a_token_is_demanded_and_is_in_no_answer() {
    let stage = flow("token: sesame-open");
    let daemon = Daemon::start(&stage);
    let refused = Scrape::of(&daemon);
    assert!(refused.status.contains("401") && refused.values.is_empty(), "{}", refused.status);
    let scrape = Scrape::with(&daemon, "Authorization: Bearer sesame-open\r\n");
    assert!(scrape.status.contains("200"), "{}", scrape.status);
    assert!(scrape.values.len() > 50 && !scrape.text.contains("sesame"));
    daemon.signal(Signal::INT);
    daemon.ended();
}

#[test]
fn o03_attempts_that_fail_are_told_by_what_they_failed_of() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { count: 500, keys: 500 } }, h: { generator: { rate: 1/s, types: [x] } } }
handlers:
  all: { on: greenroom.generated, simulate: { latency: 0ms..1ms, failures: 0.5 }, retry: { attempts: 3, backoff: 1ms..2ms } }
  x: { on: x, drop: }
outage: { failures: 1000000, window: 1h }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    let processed = |scrape: &Scrape, success: &str| {
        let pool = format!("{{pool=\"default\",success=\"{success}\"}}");
        scrape.value(&format!("actor_pool_messages_processed_total{pool}"))
    };
    let letters = "greenroom_dead_letters_total{reason=\"retries_exhausted\"}";
    let handed_on = "actor_pool_dead_letters_total{pool=\"default\"}";
    let failed = "actor_pool_messages_failed_total{pool=\"default\"}";
    let retried = "actor_pool_retries_total{pool=\"default\",class=\"failed\"}";
    // Each counts a letter at a moment of its own: at its last failure, as the pool hands it on,
    // once it is stored. So the test waits until they agree.
    let scrape = scraped(&daemon, |scrape| {
        scrape.value("greenroom_events_taken_total") > 500.0
            && processed(scrape, "true") + processed(scrape, "false") >= 501.0
            && processed(scrape, "false") == scrape.value(letters)
            && scrape.value(handed_on) == scrape.value(letters)
            && scrape.value(failed) == scrape.value(retried) + scrape.value(letters)
    });
    let given_up = scrape.value(letters);
    assert!(given_up > 10.0, "one in eight fails three times: {given_up}");
    assert!(scrape.value(retried) > 100.0, "{}", scrape.value(retried));
    daemon.stop();
}

#[test]
fn o12_seconds_of_work_are_what_waits_by_the_rate_at_which_it_is_handled() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { count: 100000, keys: 1000 } } }
pools: { default: { workers: 10, queue: 1000, rate: 100/s } }
handlers: { all: { on: '**', drop: } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    // The rate is that of the last seconds, of which there are some by then.
    let scrape = scraped(&daemon, |scrape| {
        scrape.value("greenroom_events_settled_total{outcome=\"handled\"}") > 400.0
    });
    let seconds = scrape.value("greenroom_work_waiting_seconds");
    let waits = scrape.value("actor_pool_inbox_depth{pool=\"default\"}")
        + scrape.value("greenroom_input_run_ahead{input=\"g\"}");
    let expected = waits / 100.0;
    assert!(waits > 900.0, "{waits}");
    assert!((0.5..2.0).contains(&(seconds / expected)), "{seconds} s for {waits} at 100/s");
    let run = daemon.get("/api/run").1;
    assert!(run["work_waiting_s"].as_f64() > Some(expected / 2.0), "{run}");
    daemon.stop();
}
