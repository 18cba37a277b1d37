//! Names, ranges, defaults and presets (H01, H02, H11).

use greenroom::event_pool::{Engine, EventPool, EventPoolConfig, EventPoolError, Preset};
use greenroom_config::Word;

use super::stage::{Clerk, Done, clerks, sizes};

fn yaml(text: &str) -> EventPoolConfig {
    EventPoolConfig::from_yaml(text).unwrap_or_else(|errors| panic!("{text}:\n{errors}"))
}

fn toml(text: &str) -> EventPoolConfig {
    EventPoolConfig::from_toml(text).unwrap_or_else(|errors| panic!("{text}:\n{errors}"))
}

/// The errors in a YAML text.
fn errors(text: &str) -> String {
    EventPoolConfig::from_yaml(text).expect_err(text).to_string()
}

#[test]
fn h01_yaml_toml_and_code_have_the_same_names_and_defaults() {
    let default = EventPoolConfig {
        preset: Preset::Standard,
        pool_size: None,
        inbox_size: None,
        max_restarts: 3,
        enable_event_stream: true,
        engine: Engine::Keyed,
        memory_ceiling: 2 << 30,
    };
    assert_eq!(EventPoolConfig::default(), default);
    assert_eq!((default.pool_size(), default.inbox_size()), (256, 1_000));
    for empty in ["", "# nothing\n", "~", "{}"] {
        assert_eq!(yaml(empty), default, "{empty}");
    }
    assert_eq!(toml("# nothing\n"), default);

    let other = EventPoolConfig {
        preset: Preset::Logs,
        pool_size: Some(64),
        inbox_size: Some(2_000),
        max_restarts: 0,
        enable_event_stream: false,
        engine: Engine::Shared,
        memory_ceiling: 512 << 20,
    };
    let written = [
        ("preset", "logs"),
        ("pool_size", "64"),
        ("inbox_size", "2_000"),
        ("max_restarts", "0"),
        ("enable_event_stream", "false"),
        ("engine", "shared"),
        ("memory_ceiling", "512MiB"),
    ];
    let text = |between: &str, quote: &str| {
        let lines = written.map(|(key, value)| match value {
            "logs" | "shared" | "512MiB" => format!("{key}{between}{quote}{value}{quote}"),
            value => format!("{key}{between}{value}"),
        });
        lines.join("\n")
    };
    assert_eq!(yaml(&text(": ", "")), other);
    assert_eq!(toml(&text(" = ", "\"")), other);
}

#[test]
fn h01_camel_case_is_accepted() {
    let config = yaml(
        "poolSize: 8\ninboxSize: 9\nmaxRestarts: 1\nenableEventStream: false\nmemoryCeiling: 1GB",
    );
    let expected = EventPoolConfig {
        max_restarts: 1,
        enable_event_stream: false,
        memory_ceiling: 1_000_000_000,
        ..sizes(8, 9)
    };
    assert_eq!(config, expected);
}

#[test]
fn h01_each_end_of_a_range_is_accepted_and_what_is_beyond_is_not() {
    for (key, least, most, below, above) in [
        ("pool_size", "1", "65536", "0", "65537"),
        ("inbox_size", "1", "10000000", "0", "10000001"),
        ("max_restarts", "0", "1000000", "-1", "1000001"),
        ("memory_ceiling", "1MiB", "18446744073709551615", "1048575", "18446744073709551616"),
    ] {
        for good in [least, most] {
            // An inbox of ten million is too much for 256 workers.
            let others = if key == "pool_size" { "inbox_size: 1" } else { "poolSize: 1" };
            let others = if key == "inbox_size" { "pool_size: 1" } else { others };
            yaml(&format!("{key}: {good}\n{others}"));
        }
        for bad in [below, above, "''", "many", "1e9", "1.5", "_1", "true"] {
            let error = errors(&format!("{key}: {bad}"));
            assert!(error.contains(&format!("`{key}` has to be ")), "{error}");
        }
    }
}

#[test]
fn h01_errors_name_the_key_the_line_and_the_range() {
    let rows = [
        ("pool_size: 0", 1, "`pool_size` has to be a whole number from 1 to 65536"),
        ("\npoolSize: -1", 2, "`pool_size` has to be a whole number from 1 to 65536"),
        ("inbox_size: 1e9", 1, "`inbox_size` has to be a whole number from 1 to 10000000"),
        ("max_restarts: many", 1, "`max_restarts` has to be a whole number from 0 to 1000000"),
        ("enable_event_stream: yes", 1, "`enable_event_stream` has to be `true` or `false`"),
        ("engine: keyd", 1, "`engine` has to be `keyed` or `sticky` or `shared`"),
        ("engine: keyd", 1, "keyed"),
        ("preset: order", 1, "`preset` has to be `low_latency` or `standard` or"),
        ("preset: order", 1, "`orders`"),
        ("memory_ceiling: 2 parsecs", 1, "`memory_ceiling` has to be a size from 1MiB"),
        ("pool_sise: 5", 1, "did you mean `pool_size`?"),
        ("workers: 5", 1, "unknown key `workers` in an event pool"),
        ("pool_size: [1]", 1, "`pool_size` has to be a whole number from 1 to 65536"),
        ("pool_size: { a: [1, {}] }", 1, "`pool_size` has to be a whole number from 1 to 65536"),
        ("engine: keyed\n\npoolSize: 5\npool_size: 5", 4, "`pool_size` is given twice"),
        (
            "pool_size: 65_536\ninbox_size: 2_000",
            2,
            "`inbox_size` is 2000, and with 65536 workers it may be 1525 at most: a pool holds 100,000,000",
        ),
        (
            "pool_size: 60000\npreset: logs",
            1,
            "`inbox_size` is 10000, and with 60000 workers it may be 1666 at most",
        ),
    ];
    for (text, line, expected) in rows {
        let error = errors(text);
        assert!(error.contains(expected), "{text}:\n{error}");
        assert!(error.contains(&format!("--> :{line}:")), "{text}:\n{error}");
    }
}

#[test]
fn h01_all_problems_are_told_at_once_in_the_order_of_the_text() {
    let yaml = "inbox_size: 0\nenigne: keyed\npreset: fast\npool_size: 0\n";
    let toml = "inbox_size = 0\nenigne = 'keyed'\npreset = 'fast'\npool_size = 0\n";
    for errors in [EventPoolConfig::from_yaml(yaml), EventPoolConfig::from_toml(toml)] {
        let errors = errors.unwrap_err();
        assert_eq!(errors.errors(), 4, "{errors}");
        let keys = ["`inbox_size`", "`enigne`", "`preset`", "`pool_size`"];
        for (line, (error, key)) in (1..).zip(errors.sorted().into_iter().zip(keys)) {
            assert!(error.message.contains(key), "{errors}");
            assert!(errors.place(error).starts_with(&format!(":{line}:")), "{errors}");
        }
    }
}

#[test]
fn h01_a_text_that_cannot_be_read_says_where_and_why() {
    for text in ["pool_size: 5\n: : :", "- 5", "5", "[a]: 5", "a: &x 1\nb: *x", "\"a"] {
        assert!(errors(text).contains("--> :"), "{text}");
    }
    let errors = EventPoolConfig::from_toml("pool_size = 5\nengine = keyed\n").unwrap_err();
    assert!(errors.to_string().contains("--> :2:"), "{errors}");
    let twice = EventPoolConfig::from_toml("pool_size = 5\npool_size = 6").unwrap_err();
    assert_eq!(twice.errors(), 1);
}

#[tokio::test]
async fn h01_what_is_out_of_range_in_code_is_an_error_of_the_spawn_all_of_it() {
    let config = EventPoolConfig { max_restarts: 2_000_000, ..sizes(0, 10_000_001) };
    let spawned = clerks(config).0.spawn().await;
    let Err(EventPoolError::Config(errors)) = spawned else { panic!("{spawned:?}") };
    let told: Vec<_> = errors.sorted().iter().map(|error| error.message.clone()).collect();
    let expected = [
        "`pool_size` has to be a whole number from 1 to 65536",
        "`inbox_size` has to be a whole number from 1 to 10000000",
        "`max_restarts` has to be a whole number from 0 to 1000000",
    ];
    assert_eq!(told, expected);
    let errors = sizes(65_536, 2_000).check().unwrap_err().to_string();
    assert!(errors.contains("it may be 1525 at most"), "{errors}");
}

#[tokio::test(start_paused = true)]
async fn h01_the_configuration_is_what_the_pool_is_made_with() {
    let (builder, ..) = clerks(sizes(5, 7));
    let pool = builder.with(|pool| pool.workers(99).mailbox(99)).spawn().await.unwrap();
    let stats = pool.stats().pool;
    assert_eq!((stats.configured, stats.capacity), (5, 35));
    assert_eq!(pool.config(), &sizes(5, 7));
    assert!(pool.pool().admin().worker_stats().iter().all(|worker| worker.mailbox_size == 7));
}

#[test]
fn h02_presets_and_scenarios_have_their_sizes() {
    let expected = [
        ("low_latency", 256, 100),
        ("standard", 256, 1_000),
        ("high_throughput", 512, 5_000),
        ("ultra_throughput", 1_024, 10_000),
        ("memory_limited", 128, 500),
        ("orders", 256, 500),
        ("logs", 512, 10_000),
        ("iot", 1_024, 5_000),
        ("edge", 128, 200),
    ];
    assert!(Preset::WORDS.iter().eq(expected.iter().map(|(name, ..)| name)));
    for (preset, (name, pool_size, inbox_size)) in Preset::all().zip(expected) {
        assert_eq!(preset.to_string(), name);
        let config = yaml(&format!("preset: {name}"));
        assert_eq!((config.pool_size(), config.inbox_size()), (pool_size, inbox_size), "{name}");
        assert_eq!(EventPoolConfig::from(preset), config);
        assert!(config.check().is_ok());
    }
}

#[test]
fn h02_a_preset_is_overridden_key_by_key_wherever_it_stands() {
    let expected = EventPoolConfig { inbox_size: Some(77), max_restarts: 9, ..Preset::Iot.into() };
    for text in [
        "preset: iot\ninbox_size: 77\nmax_restarts: 9",
        "maxRestarts: 9\ninboxSize: 77\npreset: iot",
    ] {
        assert_eq!(yaml(text), expected, "{text}");
    }
    assert_eq!((expected.pool_size(), expected.inbox_size()), (1_024, 77));
}

#[tokio::test(start_paused = true)]
async fn h11_the_engine_is_one_key_and_nothing_else_changes() {
    for engine in Engine::all() {
        let config = yaml(&format!("engine: {engine}\npool_size: 4"));
        assert_eq!(config.engine, engine);
        let done = Done::default();
        let of_clerks = done.clone();
        let pool = EventPool::new(config, move |_| Clerk::new(of_clerks.clone()));
        let pool = pool.spawn().await.unwrap();
        assert_eq!(super::process::in_order(&pool).await, engine != Engine::Shared, "{engine}");
    }
}
