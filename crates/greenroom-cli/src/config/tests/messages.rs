//! What a stranger reads: one problem is one error, at its place, with what to write instead.

use super::*;

type Wrap = fn(&str) -> String;

/// An option, where it stands, the whole message, and what its help begins with.
const ROWS: &[(Wrap, &str, &str, &str)] = &[
    (
        root,
        "pools: [a]",
        "3:8 `pools` has to be a mapping from names, each to a pool, but this is a list",
        "write `pools: { a: { … } }`",
    ),
    (
        root,
        "pools: { a: 5 }",
        "3:13 a pool is a mapping, but this is the number 5",
        "it knows `preset`",
    ),
    (
        root,
        "outputs: { o: { file: x } }",
        "3:23 a file output is a mapping, but this is the text `x`",
        "write `{ path: … }`",
    ),
    (
        root,
        "shutdown: 5s",
        "3:11 shutdown is a mapping, but this is the text `5s`",
        "it knows `deadline`, `finish`",
    ),
    (
        root,
        "outputs: { o: { file: { pth: x } } }",
        "3:25 unknown key `pth` in a file output",
        "did you mean `path`?",
    ),
    (
        root,
        "all_outputs: yes",
        "3:14 `all_outputs` has to be `true` or `false`, but this is the text `yes`",
        "did you mean `true`?",
    ),
    (
        root,
        "all_outputs: off",
        "3:14 `all_outputs` has to be `true` or `false`, but this is the text `off`",
        "did you mean `false`?",
    ),
    (
        root,
        "no_handler: dead-letter",
        "3:13 `no_handler` has to be `dead_letter` or `ignore` or `refuse`, but this is the text `dead-letter`",
        "did you mean `dead_letter`?",
    ),
    (
        root,
        "buffer: 10k",
        "3:9 `buffer` has to be a whole number from 1 to 10000000, but this is the text `10k`",
        "did you mean `10000`?",
    ),
    (
        root,
        "admin: { listen: ':7070' }",
        "3:18 `:7070` is not an address to listen on",
        "did you mean `127.0.0.1:7070`?",
    ),
    (
        pool,
        "workers: '5'",
        "3:24 `workers` has to be a whole number from 1 to 65536, but this is the text `5`",
        "did you mean `5`?",
    ),
    (
        pool,
        "workers: 1e3",
        "3:24 `workers` has to be a whole number from 1 to 65536, but this is the number 1000",
        "did you mean `1000`?",
    ),
    (
        pool,
        "workers: 1e9",
        "3:24 `workers` has to be a whole number from 1 to 65536, but this is the number 1000000000",
        "",
    ),
    (
        pool,
        "limit: adaptiv",
        "3:22 `limit` has to be a whole number from 1 to 65536, or a mapping, but this is the text `adaptiv`",
        "did you mean `{ adaptive: { … } }`?",
    ),
    (
        pool,
        "engine: Keyed",
        "3:23 `engine` has to be `keyed` or `sticky` or `shared`, but this is the text `Keyed`",
        "did you mean `keyed`?",
    ),
    (
        pool,
        "timeout: 5 seconds",
        "3:24 `timeout` has to be a duration from 1ms to 24h, but this is the text `5 seconds`",
        "did you mean `5s`?",
    ),
    (
        pool,
        "timeout: 5",
        "3:24 `timeout` has to be a duration from 1ms to 24h, but the unit is missing",
        "did you mean `5s` or `5ms`?",
    ),
    (
        pool,
        "timeout: 25h",
        "3:24 `timeout` has to be a duration from 1ms to 24h, but the text `25h` is out of that range",
        "for example",
    ),
    (
        pool,
        "rate: 20 per minute",
        "3:21 `rate` has to be a rate above zero, but this is the text `20 per minute`",
        "did you mean `20/min`?",
    ),
    (
        pool,
        "retry: { backoff: 1s-5s }",
        "3:33 `backoff` has to be a range of durations, the shorter first, but this is the text `1s-5s`",
        "did you mean `1s..5s`?",
    ),
    (pool, "autoscale: { mx: 4 }", "3:28 unknown key `mx` in autoscale", "did you mean `max`?"),
    (
        pool,
        "order_by: Subject",
        "3:25 `Subject` is not the name of an attribute",
        "did you mean `subject`?",
    ),
    (
        pool,
        "engine: sticky, on_final_failure: park",
        "3:49 a pool whose `engine` is `sticky` cannot park a key",
        "write `engine: keyed`",
    ),
    (
        generator,
        "payload: 10mb",
        "1:39 `payload` has to be a size from 0 bytes to 16MiB, but this is the text `10mb`",
        "did you mean `10MB`?",
    ),
    (
        generator,
        "payload: 99mb",
        "1:39 `payload` has to be a size from 0 bytes to 16MiB, but this is the text `99mb`",
        "for example",
    ),
    (
        handler,
        "kind: pass",
        "2:25 unknown key `kind` in a handler",
        "the kind is a key itself: write `pass",
    ),
    (
        handler,
        "pass: yes",
        "2:31 `pass` takes no settings, but this is the text `yes`",
        "write `pass: {}`",
    ),
    (
        handler,
        "pool: defalt, pass: {}",
        "2:31 there is no pool `defalt`",
        "did you mean `default`?",
    ),
    (handler, "exec: { cmd: [sh] }", "2:33 unknown key `cmd` in exec", "did you mean `command`?"),
    (
        handler,
        "exec: { command: [sh], env: [A] }",
        "2:53 `env` has to be a mapping from names to texts, but this is a list",
        "for example `{ name: text }`",
    ),
    (
        handler,
        "http: { url: 'http://a', status: { 404: retri } }",
        "2:60 \"retri\" is none of settle, retry, hold, pause, pause_share, reject and park",
        "did you mean `retry`?",
    ),
    (
        handler,
        "simulate: { failures: 5% }",
        "2:47 `failures` has to be a number from 0 to 1, but this is the text `5%`",
        "did you mean `0.05`?",
    ),
];

#[test]
fn one_problem_is_one_error_at_its_place_with_what_was_meant() {
    for (wrap, option, message, help) in ROWS {
        let loaded = load(&wrap(option));
        assert_eq!(loaded.lines(), [*message], "{option}");
        let text = loaded.text();
        assert!(help.is_empty() != text.contains(&format!("= help: {help}")), "{option}\n{text}");
    }
}

#[test]
fn a_pool_whose_name_is_misspelt_is_not_told_to_be_without_handlers() {
    for written in ["epr", "еrр", "eпр"] {
        let text = format!(
            "{BASE}handlers: {{ h: {{ on: a, pool: {written}, pass: }} }}\npools: {{ erp: }}\n"
        );
        let loaded = load(&text);
        assert_eq!(loaded.lines(), [format!("2:31 there is no pool `{written}`")]);
        assert!(loaded.text().contains("did you mean `erp`?"), "{}", loaded.text());
    }
}

#[test]
fn text_that_is_no_utf8_is_shown_at_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.yaml");
    for (bytes, expected) in [
        (&b"inputs:\n  \xc3\xa4h\xff: 5\n"[..], "2:5 this is not UTF-8 text"),
        (b"\xff\xfei\0", "1:1 this is UTF-16, not UTF-8"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let (config, problems) = super::super::load(&file, &[]);
        assert!(config.is_none());
        assert_eq!(Loaded { config, problems }.lines(), [expected]);
    }
}

#[test]
fn of_a_long_line_only_what_lies_around_the_place_is_shown() {
    let text = root(&format!("no_handler: {{ {}: 1, wrong: 2 }}", "x".repeat(100_000)));
    let shown = load(&text.replace("no_handler: {", "admin: {")).text();
    assert!(shown.len() < 4_000, "{}", shown.len());
    let caret = shown.lines().rfind(|line| line.contains("^^^^^")).unwrap();
    let line = shown.lines().find(|line| line.contains("wrong: ")).unwrap();
    let column = |text: &str, what: &str| text[..text.find(what).unwrap()].chars().count();
    assert_eq!(column(caret, "^"), column(line, "wrong"), "{shown}");
}
