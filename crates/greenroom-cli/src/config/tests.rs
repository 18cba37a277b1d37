//! The configuration as a whole, from text to problems or structs.

mod conditions;
mod credentials;
mod flow;
mod http_input;
mod kafka;
mod layers;
mod messages;
mod nats;
mod pools;
mod records;
mod shape;
mod telemetry;
mod values;

use std::{path::Path, time::Duration};

use greenroom::event_pool::{Engine, Preset};
use greenroom_bus::{
    engine::{NoHandler, OnFull, OutageConfig, OutagePer},
    sink::file::FileOutput,
};
use greenroom_config::{Word, World, defaults, schema::Group};

use super::*;

/// Inputs and a handler that every configuration needs; `extra` follows.
const BASE: &str = "inputs: { in: { generator: { count: 1, types: [a] } } }\n";

fn env(name: &str) -> Option<String> {
    match name {
        "WORKERS" => Some("7".to_owned()),
        "SECRET" => Some("hunter2".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

struct Loaded {
    config: Option<Config>,
    problems: Problems,
}

fn load_with(file: &str, text: &str, settings: &[&str], directory: &Path) -> Loaded {
    let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let world = World { env: &env, directory };
    let mut problems = Problems::new(file, text);
    let file = Path::new(file);
    let source = ConfigSource { file, text, settings: &settings, world: &world, reach: true };
    let config = source.config(&mut problems);
    Loaded { config: config.filter(|_| problems.errors() == 0), problems }
}

/// Without a look at what lies outside of the file, the features of this build included.
fn load_as_written(text: &str) -> Loaded {
    let world = World { env: &env, directory: Path::new("/etc/greenroom") };
    let mut problems = Problems::new("c.yaml", text);
    let file = Path::new("c.yaml");
    let source = ConfigSource { file, text, settings: &[], world: &world, reach: false };
    let config = source.config(&mut problems);
    Loaded { config: config.filter(|_| problems.errors() == 0), problems }
}

fn load(text: &str) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    load_with("c.yaml", text, &[], directory.path())
}

impl Loaded {
    fn good(self) -> Config {
        let shown = self.problems.render(false);
        self.config.unwrap_or_else(|| panic!("{shown}"))
    }

    fn text(&self) -> String {
        self.problems.render(false)
    }

    /// `line:column message` of each problem.
    fn lines(&self) -> Vec<String> {
        let line = |problem: &&Problem| match &problem.place {
            Place::Source(span) => format!("{}:{} {}", span.line, span.column, problem.message),
            Place::Set(path) => format!("--set {path} {}", problem.message),
        };
        self.problems.sorted().iter().map(line).collect()
    }
}

fn pool(option: &str) -> String {
    format!(
        "{BASE}handlers: {{ h: {{ on: a, pool: p, pass: {{}} }} }}\npools: {{ p: {{ {option} }} }}\n"
    )
}

fn handler(option: &str) -> String {
    format!("{BASE}handlers: {{ h: {{ on: a, {option} }} }}\n")
}

fn generator(option: &str) -> String {
    format!(
        "inputs: {{ in: {{ generator: {{ {option} }} }} }}\nhandlers: {{ h: {{ on: '**', pass: {{}} }} }}\n"
    )
}

fn records(option: &str) -> String {
    format!(
        "inputs: {{ in: {{ file: {{ path: '-' }}, {option} }} }}\nhandlers: {{ h: {{ on: '**', pass: {{}} }} }}\n"
    )
}

fn root(option: &str) -> String {
    format!("{BASE}handlers: {{ h: {{ on: a, pass: {{}} }} }}\n{option}\n")
}

/// What a declaration cannot say by itself: see [`Group::mistakes`].
#[test]
fn c18_every_option_is_documented_named_once_and_has_a_default_that_decodes() {
    assert_eq!(Config::GROUP.mistakes(), Vec::<String>::new());
    fn options(group: &Group) -> usize {
        group.all().map(|opt| 1 + opt.kind.inner().map_or(0, |(_, inner)| options(inner))).sum()
    }
    let seen = options(Config::GROUP);
    assert!(seen > 100, "{seen}");
}

/// What is not of a kind, whose table stands beside it, or looks outside of the file: a good value,
/// one of the wrong type, one out of range or otherwise impossible.
#[test]
fn c02_every_option_takes_what_it_should_and_refuses_the_rest() {
    type Wrap = fn(&str) -> String;
    let rows: &[(Wrap, &str, &str, &[&str])] = &[
        (pool, "workers", "1_000", &["five", "0", "65537", "-1", "1.5", "1e9", "", "[1]", "'5'"]),
        (pool, "pool_size", "65536", &["0", "65_537", "x"]),
        (pool, "poolSize", "2", &["0", "true"]),
        (pool, "queue", "10_000_000", &["0", "10000001", "many"]),
        (pool, "inbox_size", "1", &["0", "10000001", "{}"]),
        (pool, "inboxSize", "5", &["0"]),
        (pool, "preset", "low_latency", &["fast", "order", "1", "[orders]"]),
        (pool, "engine", "sticky", &["keyd", "1"]),
        (pool, "enable_event_stream", "false", &["1", "maybe"]),
        (pool, "enableEventStream", "true", &["''"]),
        (pool, "on_full", "reject", &["3", "rejct", "drop"]),
        (pool, "onFull", "dead_letter", &["Pause"]),
        (pool, "max_restarts", "0", &["1000001", "-1", "few"]),
        (pool, "maxRestarts", "1_000_000", &["no"]),
        (pool, "on_final_failure", "park", &["skp", "jump", "1"]),
        (pool, "onFinalFailure", "stop", &["[skip]"]),
        (pool, "max_per_key", "1", &["0", "10000001", "many"]),
        (pool, "maxPerKey", "250", &["-1"]),
        (pool, "batch", "{ events: 20 }", &["20", "{}", "{ events: 1 }", "{ within: 5ms }"]),
        (pool, "batch", "{ events: 2, within: 5ms }", &["{ events: 2, within: 2h }"]),
        (
            pool,
            "batch",
            "{ events: 2, bytes: 64KiB }",
            &["{ events: 2, bytes: 0 }", "{ bytes: 1KiB }"],
        ),
        (pool, "order_by", "/order/id", &["5", "''", "Subject", "data.id", "/a~2", "specversion"]),
        (pool, "share_by", "/tenant", &["5", "''", "Tenant", "data.id", "/a~2", "specversion"]),
        (
            pool,
            "share_by: tenant, shares",
            "{ default: { in_hand: 5, rate: 20/s }, a/b: { weight: 3 } }",
            &["{ a: 5 }", "{ a: { weight: 0 } }", "{ a: { in_hand: -1 } }", "{ a: { rate: 5 } }"],
        ),
        (pool, "retry", "{ attempts: 1 }", &["{ attempts: 0 }", "{ backoff: 5 }", "3"]),
        (pool, "limit", "65_536", &["0", "65537", "few", "[1]", "", "{}"]),
        (
            pool,
            "limit",
            "{ adaptive: { max: 50 } }",
            &["{ adaptive: {} }", "{ adaptive: 5 }", "{ adaptive: { max: 0 } }"],
        ),
        (
            pool,
            "limit",
            "{ adaptive: { max: 50, min: 2, initial: 3, window: 1s, tolerance: 2, observe: true } }",
            &[
                "{ adaptive: { max: 5, min: 6 } }",
                "{ adaptive: { max: 5, initial: 6 } }",
                "{ adaptive: { max: 5, min: 3, initial: 2 } }",
                "{ adaptive: { max: 5, window: 0s } }",
                "{ adaptive: { max: 5, tolerance: 0.9 } }",
                "{ adaptive: { max: 5, observe: 1 } }",
            ],
        ),
        (pool, "dedicated_threads", "1", &["0", "1025", "all"]),
        (
            pool,
            "autoscale",
            "{ min: 2, max: 64, target_age: 1s, up_cooldown: 0s, down_cooldown: 1m, busy_share: 1 }",
            &[
                "{}",
                "{ min: 2 }",
                "{ min: 5, max: 4 }",
                "{ min: 0, max: 4 }",
                "{ max: 4, target_age: 0s }",
                "{ max: 4, busy_share: 0 }",
                "{ max: 4, busy_share: 1.1 }",
                "{ max: 4, up_cooldown: 5 }",
            ],
        ),
        (pool, "workers: 9, autoscale", "{ min: 2, max: 9 }", &["{ min: 2, max: 8 }"]),
        (root, "buffer", "10_000_000", &["0", "10000001", "much"]),
        (root, "all_outputs", "true", &["1", "[]"]),
        (pool, "weight", "10_000", &["0", "10001", "1.5", "heavy", "[1]"]),
        (
            records,
            "records",
            "{ type: a, source: { path: {} }, subject: { pointer: /u, optional: true }, extensions: { n: 'x' } }",
            &[
                "5",
                "{ type: a }",
                "{ type: 5, source: s }",
                "{ type: { pointer: kind }, source: s }",
                "{ type: { pointer: /k, optional: true }, source: s }",
                "{ type: { literal: a, default: b }, source: s }",
                "{ type: { literal: a, pointer: /b }, source: s }",
                "{ type: a, source: { default: s } }",
                "{ type: a, source: s, time: noon }",
                "{ type: a, source: s, extensions: { Tenant: x } }",
                "{ type: a, source: s, subject: { pointer: /u, optional: true, default: x } }",
                "{ type: a, source: s, content_type: 5 }",
            ],
        ),
        (handler, "pass: {}, key_required", "false", &["maybe", "1"]),
        (
            handler,
            "pass: {}, order_by",
            "subject",
            &["5", "''", "Subject", "data.id", "/a~2", "data"],
        ),
        (handler, "pass: {}, orderBy", "/order/id", &["[a]"]),
        (
            handler,
            "pass: {}, where",
            "{ /total: { greater: 100 }, subject: a, /b: { in: [1, x, true] } }",
            &[
                "5",
                "[a]",
                "{ Subject: a }",
                "{ /a: }",
                "{ /a: [1] }",
                "{ /a: { present: 1 } }",
                "{ /a: { in: 5 } }",
                "{ /a: { less: true } }",
                "{ /a: { greater: 5, less: 5 } }",
            ],
        ),
        (handler, "pass: {}, pool", "default", &["other", "1"]),
        (
            handler,
            "pass: {}, retry",
            "{ attempts: 1 }",
            &["{ attempts: 0 }", "{ attempts: x }", "5"],
        ),
        (
            handler,
            "pass: {}, retry",
            "{ backoff: 0ms..1s }",
            &["{ backoff: 1s..0s }", "{ backoff: 5 }"],
        ),
        (handler, "pass", "", &["{ x: 1 }", "5", "[]"]),
        (handler, "log", "{}", &["{ level: 1 }"]),
        (handler, "drop", "{}", &["yes"]),
        (handler, "exec", "{ command: [sh], cwd: . }", &["{}", "{ command: [sh], cwd: nowhere }"]),
        (
            handler,
            "http",
            "{ url: 'https://a', tls: {} }",
            &[
                "{}",
                "{ url: 'http://a', tls: {} }",
                "{ url: 'https://a', tls: { ca: nowhere } }",
                "{ url: 'https://a', tls: { ca: . } }",
                "{ url: 'https://a', tls: { server_name: a } }",
                "{ url: 'https://me:you@a', auth: { bearer: t } }",
            ],
        ),
        (root, "no_handler", "ignore", &["error", "1"]),
        (root, "noHandler", "refuse", &["later"]),
        (
            root,
            "dead_letters",
            "{ file: { path: x } }",
            &["{ file: { path: 1 } }", "{ kafka: { brokers: 'b:1' } }", "{ file: { path: no/x } }"],
        ),
        (
            root,
            "dead_letters",
            "{ store: { path: x, retention: { age: 30d, size: 1GiB }, mask: [/data/card, '/a/*/b'], mask_errors: true } }",
            &[
                "{ store: { path: no/x } }",
                "{ store: { retention: { age: 1ms } } }",
                "{ store: { retention: { size: 1KiB } } }",
                "{ store: { mask: data } }",
                "{ store: { mask: [/a, /b~2] } }",
                "{ store: { mask_errors: [/a] } }",
                "{ store: {}, file: { path: x } }",
            ],
        ),
        (
            root,
            "shutdown",
            "{ deadline: 0s }",
            &["{ deadline: 30 }", "{ deadline: 25h }", "{ dedline: 1s }"],
        ),
        (
            root,
            "outage",
            "{ failures: 2, window: 1s, limit: 1s }",
            &["{ failures: 1 }", "{ window: 0s }", "{ limit: x }"],
        ),
        (
            root,
            "outputs",
            "{ o: { http: { url: 'https://a', tls: {} } } }",
            &[
                "{ o: { http: {} } }",
                "{ o: { http: { url: 'https://a', tls: { ca: nowhere } } } }",
                "{ o: { http: { url: 'http://a' }, file: { path: x } } }",
            ],
        ),
        (
            root,
            "outputs",
            "{ o: { file: { path: x, truncate: true } } }",
            &[
                "{ o: {} }",
                "{ o: { file: {} } }",
                "{ o: { on: 'a..b', file: { path: x } } }",
                "{ o: { where: { /a: { present: maybe } }, file: { path: x } } }",
                "{ 'a.b': { file: { path: x } } }",
            ],
        ),
        (
            root,
            "dead_letters",
            "{ file: { path: x, rotate: { every: 1h } } }",
            &["{ file: { rotate: 5 } }", "{ file: { path: '-' } }"],
        ),
    ];
    for (wrap, option, good, bad) in rows {
        load(&wrap(&format!("{option}: {good}"))).good();
        for value in *bad {
            let loaded = load(&wrap(&format!("{option}: {value}")));
            assert_eq!(mistakes(&loaded), 1, "{option}: {value}\n{}", loaded.text());
        }
    }
}

/// Errors, but that this build lacks a kind.
fn mistakes(loaded: &Loaded) -> usize {
    loaded.problems.errors() - loaded.text().matches("this greenroom was built without").count()
}

#[test]
fn defaults_are_those_of_the_specification() {
    let config =
        load(&root("pools: { p: { workers: 4 } }\noutputs: { o: { file: { path: x } } }")).good();
    assert_eq!(config.no_handler, NoHandler::DeadLetter);
    assert_eq!(config.dead_letters.file.path.file_name().unwrap(), "dead-letters.ndjson");
    assert_eq!(config.shutdown.deadline, Duration::from_secs(30));
    let outage = OutageConfig {
        failures: 20,
        window: Duration::from_secs(10),
        per: OutagePer::Handler,
        limit: Duration::from_secs(300),
    };
    assert_eq!(config.outage, outage);
    let default = PoolConfig {
        name: "default".into(),
        preset: None,
        workers: 1,
        queue: 1000,
        inbox_size: None,
        engine: Engine::Keyed,
        max_per_key: None,
        batch: None,
        share_queue: None,
        on_share_full: None,
        on_full: OnFull::Pause,
        timeout: None,
        max_restarts: 3,
        on_final_failure: OnFinalFailure::Skip,
        event_stream: true,
        rate: None,
        limit: None,
        autoscale: None,
        autotune: Autotune::Say,
        advisor: defaults("advisor").unwrap(),
        dedicated_threads: None,
        weight: None,
        order_by: None,
        share_by: None,
        shares: Vec::new(),
        retry: None,
    };
    assert_eq!(config.pools[0], default);
    assert_eq!(config.pools[1], PoolConfig { name: "p".into(), workers: 4, ..default });
    let handler = &config.handlers[0];
    assert_eq!(
        (handler.retry.attempts, handler.pool.as_str(), handler.key_required),
        (5, "default", false)
    );
    assert_eq!(handler.retry, greenroom_bus::engine::Retry::default());
    assert_eq!(config.outputs[0].on, ["**"]);
    let file = config.outputs[0].kind.downcast_ref::<FileOutput>().unwrap();
    assert!(!file.truncate);
}

#[test]
fn r01_the_default_pool_of_the_file_has_the_defaults_of_any_pool() {
    let implied = load(&root("")).good();
    let written = load(&root("pools: { default: }")).good();
    assert_eq!(implied.pools, written.pools);
}

#[test]
fn h01_inbox_size_counts_for_each_worker() {
    let config = load(&pool("poolSize: 256, inboxSize: 1000")).good();
    let found = config.pools.iter().find(|pool| pool.name == "p").unwrap();
    assert_eq!((found.workers, found.queue), (256, 256_000));
    let both = load(&pool("queue: 5, inbox_size: 5"));
    assert!(both.text().contains("two ways to set the same size"), "{}", both.text());
    let twice = load(&pool("workers: 5, pool_size: 5"));
    assert!(twice.text().contains("`workers` is given twice"), "{}", twice.text());
}

#[test]
fn h02_a_preset_gives_the_sizes_that_are_not_given() {
    for preset in Preset::all() {
        let (workers, each) = (preset.pool_size(), preset.inbox_size());
        for (more, expected) in [
            ("", (workers, workers * each)),
            (", pool_size: 3", (3, 3 * each)),
            (", workers: 1", (1, each)),
            (", inboxSize: 7", (workers, workers * 7)),
            (", queue: 9", (workers, 9)),
            (", workers: 2, inbox_size: 5", (2, 10)),
        ] {
            let config = load(&pool(&format!("preset: {preset}{more}"))).good();
            let found = config.pools.iter().find(|pool| pool.name == "p").unwrap();
            assert_eq!((found.workers, found.queue), expected, "{preset}{more}");
        }
    }
    assert!(load(&pool("preset: order")).text().contains("did you mean `orders`?"));
}

#[test]
fn h01_both_sizes_together_are_within_what_a_pool_holds() {
    let loaded = load(&pool("pool_size: 65_536, inbox_size: 2_000"));
    let lines = loaded.lines();
    assert_eq!(
        lines,
        ["3:46 131072000 events may wait for these 65536 workers, which is above 100000000"]
    );
    assert!(loaded.text().contains("`inbox_size` may be 1525 at most here"), "{}", loaded.text());
    assert_eq!(load(&pool("workers: 60_000, preset: logs")).problems.errors(), 1);
    load(&pool("pool_size: 65_536, inbox_size: 1_525")).good();
}

#[test]
fn h11_who_asks_for_order_where_none_is_kept_is_told() {
    let text = |engine| {
        let handler = "handlers: { h: { on: a, pool: p, order_by: subject, pass: {} } }";
        format!("{BASE}{handler}\npools: {{ p: {{ engine: {engine} }} }}\n")
    };
    let shared = load(&text("shared"));
    assert_eq!(shared.lines(), ["2:44 the pool `p` keeps no order: its `engine` is `shared`"]);
    assert_eq!(shared.good().pools[1].engine, Engine::Shared);
    assert_eq!(load(&text("keyed")).problems.summary(), "no problems");
}

#[test]
fn o09_an_admin_listener_that_others_can_reach_needs_a_token() {
    for (admin, expected) in [
        ("listen: 0.0.0.0:7070", "needs a `token`"),
        ("listen: '[::]:7070'", "needs a `token`"),
        ("listen: 192.0.2.1:7070", "needs a `token`"),
        ("listen: '7070'", "not an address"),
        ("listen: example.org:7070", "not an address"),
    ] {
        let loaded = load(&root(&format!("admin: {{ {admin} }}")));
        assert!(loaded.problems.errors() == 1 && loaded.text().contains(expected), "{admin}");
    }
    for (admin, listen) in [
        ("", "127.0.0.1:7070"),
        ("listen: localhost:1", "127.0.0.1:1"),
        ("listen: '[::1]:2'", "[::1]:2"),
        ("listen: 0.0.0.0:3, token: sesame", "0.0.0.0:3"),
    ] {
        let config = load(&root(&format!("admin: {{ {admin} }}"))).good();
        assert_eq!(config.admin.as_ref().unwrap().listen.0.to_string(), listen);
        assert!(!format!("{config:?}").contains("sesame"));
    }
    assert_eq!(load(&root("")).good().admin, None);
}

#[test]
fn c02_a_key_that_was_written_one_level_too_high_is_told_where_it_belongs() {
    for (text, expected) in [
        (handler("pass: {}, rate: 5/s"), "it belongs inside `layers[]`"),
        (handler("exec: { command: [sh] }, timeout: 5s"), "inside `layers[]` or `exec` or `http`"),
        (handler("pass: {}, attempts: 5"), "it belongs inside `retry`"),
        (root("workers: 5"), "it belongs inside `pools.NAME`"),
    ] {
        let loaded = load(&text);
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
        assert!(loaded.text().contains("unknown key"), "{}", loaded.text());
        assert!(loaded.text().contains(expected), "{}", loaded.text());
    }
}

#[test]
fn c02_what_no_version_has_is_an_unknown_key() {
    for (text, expected) in [
        (pool("autopilot: act"), "unknown key `autopilot` in a pool"),
        (
            root("outputs: { o: { all: true, file: { path: o } } }"),
            "unknown key `all` in an output",
        ),
        (
            root("").replace("generator: { count: 1, types: [a] }", "memory: {}"),
            "unknown key `memory` in an input",
        ),
    ] {
        let loaded = load(&text);
        assert!(loaded.problems.errors() > 0, "{}", loaded.text());
        assert!(loaded.text().contains(expected), "{}", loaded.text());
    }
}

#[test]
fn d06_dead_letters_go_to_one_place() {
    let letters = |to: &str| load(&root(&format!("dead_letters: {{ {to} }}")));
    for (to, expected) in [
        ("file: {}, kafka: { brokers: 'b:1', topic: t }", "`kafka` is another"),
        ("store: {}, nats: { servers: 'b:1', subject: s }", "`nats` is another"),
        (
            "kafka: { brokers: 'b:1', topic: t }, nats: { servers: 'b', subject: s }",
            "`nats` follows `kafka`",
        ),
        ("kafka: { brokers: 'b', topic: t }", "`b` is no broker"),
        ("kafka: { brokers: 'b:1' }", "`topic`"),
        ("nats: { servers: 'b:1' }", "`subject`"),
    ] {
        let loaded = letters(to);
        assert_eq!(mistakes(&loaded), 1, "{}", loaded.text());
        assert!(loaded.text().contains(expected), "{}", loaded.text());
    }
    if cfg!(feature = "kafka") {
        let config = letters("kafka: { brokers: 'b:1', topic: t }").good();
        let LettersTo::Broker(to) = config.dead_letters.destination() else { panic!("{config:?}") };
        assert_eq!(to.downcast_ref::<greenroom_kafka::kinds::KafkaLetters>().unwrap().topic, "t");
    }
    if cfg!(feature = "nats") {
        let config = letters("nats: { server: 'nats://u:hunter2@b:1', subject: s }").good();
        let LettersTo::Broker(to) = config.dead_letters.destination() else { panic!("{config:?}") };
        let to = to.downcast_ref::<greenroom_nats::kinds::NatsLetters>().unwrap();
        assert_eq!(to.subject, "s".parse().unwrap());
        assert!(!format!("{config:?}").contains("hunter2"));
    }
    assert!(matches!(load(&root("")).good().dead_letters.destination(), LettersTo::File(_)));
}

#[test]
fn b01_standard_input_is_not_followed_and_only_what_is_followed_is_polled() {
    let of = |file: &str| {
        load(
            &root("")
                .replace("generator: { count: 1, types: [a] }", &format!("file: {{ {file} }}")),
        )
    };
    for (file, says) in [
        ("path: '-', follow: true", "standard input cannot be followed"),
        ("path: '-', poll: 1s", "`poll` is for a file that is followed"),
        ("path: x, follow: true, poll: 0ms", "poll"),
    ] {
        let loaded = of(file);
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
        assert!(loaded.text().contains(says), "{}", loaded.text());
    }
    assert_eq!(of("path: x, follow: true, poll: 1s").problems.errors(), 0);
}

#[test]
fn b01_standard_input_has_no_checkpoint() {
    let text = root("")
        .replace("generator: { count: 1, types: [a] }", "file: { path: '-', checkpoint: x }");
    let loaded = load(&text);
    assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
    assert!(loaded.text().contains("standard input cannot be read again"), "{}", loaded.text());
}

#[test]
fn r01_a_type_has_one_handler() {
    let text =
        format!("{BASE}handlers:\n  h: {{ on: [a, 'b.*'], pass: }}\n  g: {{ on: a, drop: }}\n");
    assert_eq!(load(&text).lines(), ["4:12 `a` is taken by the handler `h` already"]);
}

#[test]
fn c02_pools_without_handlers_and_handlers_without_events_are_warned_about() {
    let text = format!(
        "{BASE}handlers: {{ h: {{ on: z, pass: }}, i: {{ on: '*', drop: }} }}\npools: {{ q: {{}} }}\n"
    );
    let loaded = load(&text);
    assert_eq!(
        loaded.lines(),
        ["2:22 nothing reaches the handler `h`", "3:10 no handler names the pool `q`"]
    );
    assert_eq!(loaded.problems.summary(), "2 warnings");
    loaded.good();
}

#[test]
fn sections_that_are_missing_or_empty_are_errors() {
    assert_eq!(
        load("pools: {}\n").lines(),
        ["1:1 the configuration needs `inputs`", "1:1 the configuration needs `handlers`"]
    );
    assert_eq!(load("inputs: {}\nhandlers:\n").lines(), ["1:1 no input", "2:1 no handler"]);
    let kinds = load(&handler("pool: default"));
    assert!(kinds.text().contains("a handler needs a kind"), "{}", kinds.text());
    let two = load(&handler("pass: {}, drop: {}"));
    assert!(
        two.text().contains("a handler has one kind, but `drop` follows `pass`"),
        "{}",
        two.text()
    );
}

#[test]
fn c02_files_that_cannot_be_reached_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.ndjson"), "").unwrap();
    let config = |input: &str, output: &str| {
        format!(
            "inputs: {{ i: {{ file: {{ path: {input} }} }} }}\nhandlers: {{ h: {{ on: a, pass: }} }}\n\
             outputs: {{ o: {{ file: {{ path: {output} }} }} }}\n"
        )
    };
    let load = |input: &str, output: &str| {
        load_with("c.yaml", &config(input, output), &[], directory.path())
    };
    for (input, output, expected) in [
        ("missing", "out", "1:30 cannot read"),
        (".", "out", "1:1 `"),
        ("in.ndjson", "no/out", "3:31 cannot write"),
        ("in.ndjson", ".", "3:31 cannot write"),
        ("in.ndjson", "./in.ndjson", "3:31 `"),
        ("in.ndjson", "dead-letters.ndjson", "1:1 `"),
    ] {
        let loaded = load(input, output);
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
        assert!(loaded.lines()[0].starts_with(expected), "{:?}", loaded.lines());
    }
    let config = load("in.ndjson", "out").good();
    assert_eq!(config.outputs[0].path().unwrap(), directory.path().join("out"));
    assert!(!directory.path().join("out").exists(), "checking leaves nothing behind");
}

/// A run may make it anew at the same moment, after it was rotated.
#[test]
fn b05_c02_checking_a_file_that_is_missing_neither_makes_nor_removes_it() {
    let directory = tempfile::tempdir().unwrap();
    // A name that is there, of a file that is not: to make that file would show.
    let link = directory.path().join("out");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let text = root("outputs: { o: { file: { path: out } } }");
    load_with("c.yaml", &text, &[], directory.path()).good();
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(names.collect::<Vec<_>>(), [link]);
}

#[test]
fn the_json_schema_has_every_option_and_default() {
    let schema = json_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["required"], serde_json::json!(["inputs", "handlers"]));
    let pool = &schema["properties"]["pools"]["additionalProperties"];
    assert_eq!(pool["properties"]["workers"]["default"], 1);
    assert_eq!(pool["properties"]["workers"]["anyOf"][0]["maximum"], 65_536);
    assert_eq!(pool["properties"]["poolSize"]["deprecated"], true);
    assert_eq!(pool["properties"].get("autopilot"), None);
    let handler = &schema["properties"]["handlers"]["additionalProperties"];
    assert_eq!(handler["oneOf"].as_array().unwrap().len(), 6);
    assert_eq!(handler["properties"]["http"]["properties"]["mode"]["default"], "binary");
}

/// What stands in a page as an example, with an input where it has none.
#[test]
fn the_examples_of_the_pages_are_valid() {
    for page in ["layers.md", "pools.md", "records.md", "routing.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let page = std::fs::read_to_string(path).unwrap();
        let (_, rest) = page.split_once("```yaml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("schemas")).unwrap();
        std::fs::write(directory.path().join("schemas/price.json"), "{}").unwrap();
        std::fs::write(directory.path().join("in"), "").unwrap();
        let has_pools = example.contains("pools:") || !example.contains("erp");
        let pools = if has_pools { "" } else { "pools: { erp: {} }\n" };
        std::fs::write(directory.path().join("app.log"), "").unwrap();
        let inputs = "inputs: { in: { file: { path: in } } }\n";
        let inputs = if example.contains("inputs:") { "" } else { inputs };
        let text = format!("{inputs}{pools}{example}");
        let loaded = load_with("c.yaml", &text, &[], directory.path());
        assert_eq!(loaded.problems.summary(), "no problems", "{}", loaded.text());
    }
}

/// After an option was added or changed, `GREENROOM_WRITE_REFERENCE=1 cargo test -p greenroom-cli
/// reference_page` writes it.
#[test]
fn c18_the_reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("GREENROOM_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    let differs = page.lines().zip(reference().lines()).position(|(is, to)| is != to);
    assert!(
        page == reference(),
        "docs/configuration.md differs from line {:?} (counted from 0) on: \
         GREENROOM_WRITE_REFERENCE=1 cargo test -p greenroom-cli reference_page",
        differs
    );
}
