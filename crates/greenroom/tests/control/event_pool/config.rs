//! Names, ranges, defaults and presets (H01, H02, H11).

use greenroom::event_pool::{Engine, EventPool, EventPoolConfig, EventPoolError, Preset};

use super::stage::{Clerk, Done, clerks, sizes};

#[test]
fn h01_yaml_toml_and_code_have_the_same_names_and_defaults() {
    let default = EventPoolConfig {
        pool_size: 256,
        inbox_size: 1_000,
        max_restarts: 3,
        enable_event_stream: true,
        engine: Engine::Keyed,
        memory_ceiling: 2 << 30,
    };
    assert_eq!(EventPoolConfig::default(), default);
    for empty in ["", "# nothing\n", "~", "{}"] {
        assert_eq!(EventPoolConfig::from_yaml(empty), Ok(default), "{empty}");
    }
    assert_eq!(EventPoolConfig::from_toml("# nothing\n"), Ok(default));

    let other = EventPoolConfig {
        pool_size: 64,
        inbox_size: 2_000,
        max_restarts: 0,
        enable_event_stream: false,
        engine: Engine::Shared,
        memory_ceiling: 512 << 20,
    };
    let written = [
        ("pool_size", "64"),
        ("inbox_size", "2_000"),
        ("max_restarts", "0"),
        ("enable_event_stream", "false"),
        ("engine", "shared"),
        ("memory_ceiling", "512MiB"),
    ];
    let text = |between: &str, quote: &str| {
        let lines = written.map(|(key, value)| match value {
            "shared" | "512MiB" => format!("{key}{between}{quote}{value}{quote}"),
            value => format!("{key}{between}{value}"),
        });
        lines.join("\n")
    };
    assert_eq!(EventPoolConfig::from_yaml(&text(": ", "")), Ok(other));
    assert_eq!(EventPoolConfig::from_toml(&text(" = ", "\"")), Ok(other));
    let mut set = EventPoolConfig::default();
    written.iter().for_each(|(key, value)| set.set(key, value).expect(key));
    assert_eq!(set, other);
}

#[test]
fn h01_camel_case_is_accepted() {
    let config = EventPoolConfig::from_yaml(
        "poolSize: 8\ninboxSize: 9\nmaxRestarts: 1\nenableEventStream: false\nmemoryCeiling: 1GB",
    );
    let expected = EventPoolConfig {
        max_restarts: 1,
        enable_event_stream: false,
        memory_ceiling: 1_000_000_000,
        ..sizes(8, 9)
    };
    assert_eq!(config, Ok(expected));
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
            let mut config = EventPoolConfig::default();
            config.set(key, good).unwrap_or_else(|error| panic!("{key} {good}: {error}"));
        }
        for bad in [below, above, "", "many", "1e9", "1.5", "_1", "true"] {
            let mut config = EventPoolConfig::default();
            let error = config.set(key, bad).expect_err(bad).to_string();
            assert!(error.starts_with(&format!("{key} is ")), "{error}");
            assert_eq!(config, EventPoolConfig::default(), "{key} {bad}");
        }
    }
}

#[test]
fn h01_errors_name_the_key_the_line_and_the_range() {
    let rows = [
        ("pool_size: 0", "line 1: pool_size is 0, but must be 1 to 65,536"),
        ("\npoolSize: -1", "line 2: poolSize is -1, but must be a whole number, 1 to 65,536"),
        (
            "inbox_size: 1e9",
            "line 1: inbox_size is 1e9, but must be a whole number, 1 to 10,000,000",
        ),
        ("inbox_size: 10_000_001", "line 1: inbox_size is 10000001, but must be 1 to 10,000,000"),
        (
            "max_restarts: many",
            "line 1: max_restarts is many, but must be a whole number, 0 to 1,000,000",
        ),
        (
            "max_restarts:",
            "line 1: max_restarts is empty, but must be a whole number, 0 to 1,000,000",
        ),
        (
            "enable_event_stream: yes",
            "line 1: enable_event_stream is yes, but must be true or false",
        ),
        (
            "engine: keyd",
            "line 1: engine is keyd, but must be one of keyed, sticky, shared; did you mean keyed?",
        ),
        (
            "memory_ceiling: 2 parsecs",
            "line 1: memory_ceiling is 2 parsecs, but must be 1MiB or more, such as 2GiB",
        ),
        ("pool_sise: 5", "line 1: there is no key pool_sise; did you mean pool_size?"),
        ("workers: 5", "line 1: there is no key workers"),
        ("pool_size: [1]", "line 1: pool_size is a list, but must be a whole number, 1 to 65,536"),
        (
            "pool_size: { a: [1, {}] }",
            "line 1: pool_size is a mapping, but must be a whole number, 1 to 65,536",
        ),
        (
            "engine: keyed\n\npoolSize: 5\npool_size: 5",
            "line 4: pool_size is given twice, first on line 3",
        ),
        (
            "pool_size: 65_536\ninbox_size: 2_000",
            "line 2: inbox_size is 2000, but must be at most 1525: with a pool_size of 65536, a pool holds 100,000,000 messages",
        ),
        (
            "pool_size: 60000\npreset: logs",
            "line 1: inbox_size is 10000, but must be at most 1666: with a pool_size of 60000, a pool holds 100,000,000 messages",
        ),
    ];
    for (text, expected) in rows {
        let errors = EventPoolConfig::from_yaml(text).expect_err(text);
        assert_eq!(errors.to_string(), expected);
    }
    let preset = EventPoolConfig::from_yaml("preset: order").unwrap_err().to_string();
    assert!(
        preset.starts_with("line 1: preset is order, but must be one of low_latency, standard,")
    );
    assert!(preset.ends_with("; did you mean orders?"), "{preset}");
}

#[test]
fn h01_all_problems_are_told_at_once_in_the_order_of_the_text() {
    let yaml = "inbox_size: 0\nenigne: keyed\npreset: fast\npool_size: 0\n";
    let toml = "inbox_size = 0\nenigne = 'keyed'\npreset = 'fast'\npool_size = 0\n";
    for errors in [EventPoolConfig::from_yaml(yaml), EventPoolConfig::from_toml(toml)] {
        let errors = errors.unwrap_err();
        let found: Vec<_> = errors.iter().map(|error| (error.line, error.key.as_str())).collect();
        let expected = ["inbox_size", "enigne", "preset", "pool_size"];
        let expected: Vec<_> = (1..).map(Some).zip(expected).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn h01_a_text_that_cannot_be_read_says_where_and_why() {
    let yaml = ["pool_size: 5\n: : :", "- 5", "5", "[a]: 5", "a: &x 1\nb: *x", "\"a"];
    for (read, text) in yaml.map(|text| (EventPoolConfig::from_yaml(text), text)) {
        let errors = read.expect_err(text);
        assert!(errors.iter().all(|error| error.line.is_some()), "{text}: {errors}");
    }
    let errors = EventPoolConfig::from_toml("pool_size = 5\nengine = keyed\n").unwrap_err();
    assert!(errors.to_string().starts_with("line 2: this is not valid TOML: "), "{errors}");
    assert_eq!(
        EventPoolConfig::from_toml("pool_size = 5\npool_size = 6").unwrap_err().iter().count(),
        1
    );
}

#[tokio::test]
async fn h01_what_is_out_of_range_in_code_is_an_error_of_the_spawn_all_of_it() {
    let config = EventPoolConfig { max_restarts: 2_000_000, ..sizes(0, 10_000_001) };
    let spawned = clerks(config).0.spawn().await;
    let Err(EventPoolError::Config(errors)) = spawned else { panic!("{spawned:?}") };
    let keys: Vec<_> = errors.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["pool_size", "inbox_size", "max_restarts"]);
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
    assert_eq!(Preset::ALL.len(), expected.len());
    for (name, pool_size, inbox_size) in expected {
        let preset = Preset::named(name).expect(name);
        assert_eq!(preset.to_string(), name);
        let config = EventPoolConfig::from_yaml(&format!("preset: {name}"));
        assert_eq!(config, Ok(sizes(pool_size, inbox_size)), "{name}");
        assert_eq!(EventPoolConfig::from(preset), sizes(pool_size, inbox_size));
        assert_eq!(sizes(pool_size, inbox_size).check(), Ok(()));
    }
}

#[test]
fn h02_a_preset_is_overridden_key_by_key_wherever_it_stands() {
    let expected = EventPoolConfig { max_restarts: 9, ..sizes(1_024, 77) };
    for text in [
        "preset: iot\ninbox_size: 77\nmax_restarts: 9",
        "maxRestarts: 9\ninboxSize: 77\npreset: iot",
    ] {
        assert_eq!(EventPoolConfig::from_yaml(text), Ok(expected), "{text}");
    }
    let in_code = EventPoolConfig { inbox_size: 77, max_restarts: 9, ..Preset::Iot.into() };
    assert_eq!(in_code, expected);
}

#[tokio::test(start_paused = true)]
async fn h11_the_engine_is_one_key_and_nothing_else_changes() {
    for engine in Engine::ALL {
        let text = format!("engine: {engine}\npool_size: 4");
        let config = EventPoolConfig::from_yaml(&text).unwrap();
        assert_eq!(config.engine, *engine);
        let done = Done::default();
        let of_clerks = done.clone();
        let pool = EventPool::new(config, move |_| Clerk::new(of_clerks.clone()));
        let pool = pool.spawn().await.unwrap();
        assert_eq!(super::process::in_order(&pool).await, *engine != Engine::Shared, "{engine}");
    }
}
