//! `telemetry`: the same options in every build, and what a build does with them.

use super::*;

fn otlp(options: &str) -> String {
    root(&format!("telemetry: {{ otlp: {{ {options} }} }}"))
}

#[test]
fn o06_every_option_takes_what_it_should_and_refuses_the_rest() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "endpoint",
            "'https://collector:4318/otlp'",
            &["collector", "'ftp://a'", "'http://'", "1"],
        ),
        ("headers", "{ x-key: '${SECRET}' }", &["{ content-type: a }", "{ 'a b': c }", "a"]),
        ("tls", "{ ca: a }", &["{ cert: b }", "true"]),
        ("timeout", "1ms", &["0s", "10"]),
        ("service_name", "shop", &["[a]"]),
        ("traces", "false", &["1"]),
        ("sample", "1", &["1.5", "-0.1", "all"]),
        ("keys", "false", &["some"]),
        ("metrics", "false", &["1"]),
        ("every", "1s", &["999ms", "25h"]),
        ("logs", "false", &["warn"]),
    ];
    for (name, good, bad) in rows {
        let loaded = load_as_written(&otlp(&format!("{name}: {good}")));
        assert_eq!(loaded.problems.errors(), 0, "{name}: {good}: {}", loaded.text());
        for bad in *bad {
            let loaded = load_as_written(&otlp(&format!("{name}: {bad}")));
            assert!(loaded.problems.errors() > 0, "{name}: {bad} is taken");
        }
    }
}

#[test]
fn o06_an_option_that_does_nothing_is_told() {
    for (options, useless) in [
        ("traces: false, sample: 0.5", "`traces: false` leaves nothing"),
        ("traces: false, keys: false", "`traces: false` leaves nothing"),
        ("metrics: false, every: 1s", "`metrics: false` leaves nothing"),
        ("traces: false, metrics: false, logs: false", "nothing is sent"),
    ] {
        let loaded = load_as_written(&otlp(options));
        assert_eq!(loaded.problems.errors(), 0, "{options}");
        assert!(loaded.text().contains(useless), "{options}: {}", loaded.text());
    }
    let loaded = load_as_written(&otlp("sample: 0.5, every: 1s, logs: false"));
    assert_eq!(loaded.problems.summary(), "no problems", "{}", loaded.text());
}

#[test]
fn c08_what_may_be_secret_is_in_no_problem() {
    for options in
        ["endpoint: '${SECRET}'", "endpoint: 'http://u:${SECRET}@'", "headers: { te: '${SECRET}' }"]
    {
        let loaded = load_as_written(&otlp(options));
        assert!(loaded.problems.errors() > 0, "{options}");
        assert!(!loaded.text().contains("hunter2"), "{}", loaded.text());
    }
}
