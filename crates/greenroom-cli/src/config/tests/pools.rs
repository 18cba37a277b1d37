//! What pools inherit, what handlers inherit from them, and what of a pool does not go together.

use greenroom::{advisor::Advisor, limits::Adaptive};

use super::*;

fn named<'a>(config: &'a Config, pool: &str) -> &'a PoolConfig {
    config.pools.iter().find(|found| found.name == pool).unwrap()
}

#[test]
fn r01_pools_inherit_the_buffer_where_they_name_no_size() {
    let text = format!(
        "{BASE}handlers: {{ h: {{ on: a, pass: {{}} }} }}\nbuffer: 77\n\
         pools: {{ none: {{}}, queue: {{ queue: 5 }}, inbox: {{ workers: 2, inbox_size: 4 }}, preset: {{ preset: edge }} }}\n"
    );
    let config = load(&text).good();
    let queue = |pool| named(&config, pool).queue;
    assert_eq!((queue("default"), queue("none"), queue("queue"), queue("inbox")), (77, 77, 5, 8));
    let edge = Preset::Edge;
    assert_eq!(queue("preset"), edge.pool_size() * edge.inbox_size());
    let written = load(&text.replace("pools: {", "pools: { default: {},")).good();
    assert_eq!(named(&written, "default").queue, 77);
    assert_eq!(load(&root("")).good().pools[0].queue, 1_000, "without a buffer");
}

/// A pool with these options, and a handler in it with those.
fn both(pool: &str, handler: &str) -> String {
    format!(
        "{BASE}handlers: {{ h: {{ on: a, pool: p, pass: {{}}, {handler} }} }}\npools: {{ p: {{ {pool} }} }}\n"
    )
}

#[test]
fn r06_the_order_of_a_handler_overrides_that_of_its_pool() {
    let order =
        |pool: &str, handler: &str| load(&both(pool, handler)).good().handlers.remove(0).order_by;
    let (pool, own) = ("order_by: subject", "order_by: /id");
    assert_eq!(order("", ""), None);
    assert_eq!(order(pool, "").as_deref(), Some("subject"));
    assert_eq!(order("", own).as_deref(), Some("/id"));
    assert_eq!(order(pool, own).as_deref(), Some("/id"));
    assert_eq!(order(pool, "order_by: none"), None);
    assert_eq!(order("order_by: none", ""), None);
    load(&both(pool, "key_required: true")).good();
    for handler in ["key_required: true", "key_required: true, order_by: none"] {
        let of_pool = if handler.contains("none") { pool } else { "" };
        let loaded = load(&both(of_pool, handler));
        assert!(loaded.text().contains("`key_required` without `order_by`"), "{}", loaded.text());
    }
}

#[test]
fn r06_an_order_that_cannot_be_kept_is_told_once_and_where_it_stands() {
    assert_eq!(
        load(&both("order_by: Subject", "")).lines(),
        ["3:25 `Subject` is not the name of an attribute"]
    );
    let shared = load(&both("order_by: subject, engine: shared", ""));
    assert_eq!(shared.lines(), ["3:25 the pool `p` keeps no order: its `engine` is `shared`"]);
    let none = load(&both("engine: shared", "order_by: none"));
    assert_eq!(none.problems.summary(), "no problems");
    // The pool cannot be read: what its handlers inherit is not known, and nothing is said of it.
    let unread =
        load(&both("order_by: subject, workers: x, queue: 1, inbox_size: 1", "key_required: true"));
    let problems = unread.lines();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn r06_a_handler_overrides_each_part_of_its_pools_retry() {
    let retry = |pool: &str, handler: &str| {
        let handler = load(&both(pool, handler)).good().handlers.remove(0);
        let total = handler.retry.total.map(|total| total.as_secs());
        let waits = handler.retry.backoff;
        (handler.retry.attempts, format!("{:?}..{:?}", waits.first, waits.max), total)
    };
    let usual = "200ms..30s".to_owned();
    assert_eq!(retry("", ""), (5, usual.clone(), None));
    assert_eq!(retry("retry: { attempts: 9 }", ""), (9, usual.clone(), None));
    let pool = "retry: { attempts: 9, backoff: 1s..2s, total: 60s }";
    assert_eq!(retry(pool, ""), (9, "1s..2s".to_owned(), Some(60)));
    assert_eq!(retry(pool, "retry: { attempts: 5 }"), (5, "1s..2s".to_owned(), Some(60)));
    let own = "retry: { backoff: 200ms..30s, total: 5s }";
    assert_eq!(retry(pool, own), (9, usual, Some(5)));
}

#[test]
fn r06_a_limit_is_a_number_or_found_out() {
    let limits = |option: &str| {
        let config = load(&pool(option)).good();
        let pool = named(&config, "p");
        (pool.fixed_limit(), pool.adaptive_limit().map(Adaptive::from))
    };
    assert_eq!(limits("limit: 7"), (Some(7), None));
    let usual = Adaptive::up_to(64).enforced();
    assert_eq!(limits("limit: { adaptive: { max: 64 } }"), (None, Some(usual)));
    let all = "limit: { adaptive: { max: 64, min: 4, initial: 8, window: 1s, tolerance: 3, observe: true } }";
    let window = Duration::from_secs(1);
    let expected = Adaptive { min: 4, initial: 8, window, tolerance: 3.0, ..Adaptive::up_to(64) };
    assert_eq!(limits(all), (None, Some(expected)));
    let above = load(&pool("limit: { adaptive: { max: 5, min: 6 } }"));
    assert_eq!(above.lines(), ["3:49 `min` is 6 and `max` is 5, which is less"]);
    assert!(above.text().contains("lower `min`, or raise `max`"), "{}", above.text());
}

#[test]
fn r06_a_pool_that_scales_begins_within_its_bounds() {
    let workers = |option: &str| {
        let config = load(&pool(option)).good();
        let pool = named(&config, "p");
        assert_eq!(pool.autoscale.map(|bounds| (bounds.min, bounds.max)), Some((2, 300)));
        pool.workers
    };
    assert_eq!(workers("autoscale: { min: 2, max: 300 }"), 2);
    assert_eq!(workers("workers: 8, autoscale: { min: 2, max: 300 }"), 8);
    assert_eq!(workers("preset: standard, autoscale: { min: 2, max: 300 }"), 256);
    let outside = load(&pool("workers: 9, autoscale: { max: 8 }"));
    assert_eq!(outside.lines(), ["3:24 it would start with 9 workers, but scales from 1 to 8"]);
    let preset = load(&pool("preset: standard, autoscale: { max: 8 }"));
    assert_eq!(preset.lines(), ["3:23 it would start with 256 workers, but scales from 1 to 8"]);
}

#[test]
fn c02_a_pool_with_a_mistake_in_one_option_is_looked_at_for_the_others() {
    let loaded = load(&pool(
        "limit: { adaptive: { max: 5, initial: 9 } }, autoscale: 5, retry: 3, order_by: data.id",
    ));
    let expected = [
        "3:53 `initial` is 9 and `max` is 5, which is less",
        "3:71 autoscale is a mapping, but this is the number 5",
        "3:81 retry is a mapping, but this is the number 3",
        "3:94 `data.id` is not the name of an attribute",
    ];
    assert_eq!(loaded.lines(), expected);
}

#[test]
fn p30_threads_that_nobody_uses_and_weights_that_say_nothing_are_warned_about() {
    for (option, expected) in [
        (
            "workers: 2, dedicated_threads: 3",
            "3:46 3 threads for 2 workers: the others never do anything",
        ),
        (
            "dedicated_threads: 1, weight: 3",
            "3:45 a pool with its own threads competes with no other",
        ),
    ] {
        let loaded = load(&pool(option));
        assert_eq!(loaded.lines(), [expected]);
        assert_eq!(loaded.problems.errors(), 0);
    }
    let scales = load(&pool("dedicated_threads: 3, autoscale: { max: 3 }"));
    assert_eq!(scales.problems.summary(), "no problems");
}

#[test]
fn the_json_schema_takes_a_limit_in_both_forms() {
    let schema = json_schema();
    let pool = &schema["properties"]["pools"]["additionalProperties"]["properties"];
    let forms = pool["limit"]["anyOf"].as_array().unwrap();
    assert_eq!(forms[0]["maximum"], 65_536);
    let adaptive = &forms[3]["properties"]["adaptive"];
    assert_eq!(adaptive["required"], serde_json::json!(["max"]));
    assert_eq!(adaptive["properties"]["tolerance"]["default"], 1.5);
    assert_eq!(schema["properties"]["buffer"]["default"], 1_000);
}

/// The settings of the advisor of the pool `p`.
fn advised(text: &str) -> Option<Advisor> {
    named(&load(text).good(), "p").advised()
}

#[test]
fn o13_pools_are_advised_unless_it_is_off_and_inherit_what_they_do_not_say() {
    let usual = Advisor { least_queue: 1_000, most_queue: 10_000_000, ..Advisor::default() };
    assert_eq!(advised(&pool("workers: 4")), Some(usual));
    assert_eq!(advised(&pool("autotune: off")), None);
    let top = |top: &str, options: &str| advised(&format!("{}{top}\n", pool(options)));
    assert_eq!(top("autotune: off", ""), None);
    assert_eq!(top("autotune: off", "autotune: say"), Some(usual));
    let minute = Duration::from_secs(60);
    let expected = Advisor { period: minute, p99: 2 * minute, low_use: 0.1, ..usual };
    let found = top("advisor: { period: 1m, p99: 1s, low_use: 0.1 }", "advisor: { p99: 2m }");
    assert_eq!(found, Some(expected));
    let all = "advisor: { period: 1m, full_per_minute: 1, high_use: 0.7, shallow: 5, p99: 1s, deep: 6, \
               deep_share: 0.5, low_use: 0.1 }";
    let expected = Advisor {
        period: minute,
        full_per_minute: 1.0,
        high_use: 0.7,
        shallow: 5,
        p99: Duration::from_secs(1),
        deep: 6,
        deep_share: 0.5,
        low_use: 0.1,
        least_queue: 1_000,
        most_queue: 10_000_000,
    };
    assert_eq!(top(all, ""), Some(expected));
    assert_eq!(advised(&pool(all)), Some(expected));
}

#[test]
fn o13_nobody_acts_and_thresholds_of_nobody_are_warned_about() {
    let acts = load(&pool("autotune: act"));
    let expected = "`autotune` has to be `off` or `say`, but this is the text `act`";
    assert!(acts.text().contains(expected), "{}", acts.text());
    let idle = load(&pool("autotune: off, advisor: { p99: 1s }"));
    assert_eq!(idle.problems.summary(), "1 warning", "{}", idle.text());
}

#[test]
fn q08_events_of_a_share_cannot_wait_for_a_pool_that_lets_none_wait() {
    let lines = |options: &str| load(&both(options, "share_by: subject")).lines();
    for on_full in ["reject", "dead_letter"] {
        let expected = "what waits for room of its share waits for the pool as well";
        let found = lines(&format!("on_full: {on_full}, on_share_full: pause"));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        assert!(lines(&format!("on_full: {on_full}")).is_empty(), "it says the same of a share");
        assert!(lines(&format!("on_full: {on_full}, on_share_full: reject")).is_empty());
        assert!(lines(&format!("on_share_full: {on_full}")).is_empty());
    }
    assert!(lines("on_full: pause, on_share_full: pause").is_empty());
}

#[test]
fn q04_the_documented_spelling_of_an_option_is_suggested() {
    let told =
        |option: &str| load(&both(&format!("shares: {{ a: {{ {option}: 5 }} }}"), "")).text();
    assert!(told("inhand").contains("did you mean `in_hand`?"), "{}", told("inhand"));
    assert!(told("inHnad").contains("did you mean `inHand`?"), "{}", told("inHnad"));
}
