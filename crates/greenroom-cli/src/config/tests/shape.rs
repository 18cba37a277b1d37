//! What is wrong with a file as a whole, and how that is shown.

use super::*;

#[test]
fn c02_all_problems_come_in_one_run_with_line_and_column() {
    let text = "\
inputs:
  orders:
    file: { pth: orders.ndjson }
pools:
  erp: { workers: five, rate: 20 }
handlers:
  prices:
    on: [price.changed, 'a*']
    pool: epr
    retries: { attempts: 5 }
    http: { url: 'localhost:9000', timeout: 5 }
  cache:
    on: price.changed
    pass:
admin: { listen: nowhere }
";
    assert_eq!(
        load(text).lines(),
        [
            "3:13 unknown key `pth` in a file input",
            "5:19 `workers` has to be a whole number from 1 to 65536, but this is the text `five`",
            "5:31 `rate` has to be a rate above zero, but this is the number 20",
            "8:25 `a*` is not a type or pattern: `*` must be a whole segment",
            "9:11 there is no pool `epr`",
            "10:5 unknown key `retries` in a handler",
            "11:18 this is not an http or https URL",
            "11:45 `timeout` has to be a duration from 1ms to 24h, but the unit is missing",
            "13:9 `price.changed` is taken by the handler `prices` already",
            "15:18 `nowhere` is not an address to listen on",
        ]
    );
}

#[test]
fn a_url_without_a_host_is_refused_with_its_place_and_what_to_write() {
    for url in ["http:///x", "https:x", "http:/x", "http:////x"] {
        let shown = load(&handler(&format!("http: {{ url: '{url}' }}"))).text();
        assert!(shown.contains("this URL has no host\n --> c.yaml:"), "{shown}");
        assert!(shown.contains("after two slashes, for example `http://"), "{shown}");
    }
}

#[test]
fn problems_are_shown_like_those_of_rustc() {
    let text = load(&pool("wokers: 3")).text();
    let expected = "\
error: unknown key `wokers` in a pool
 --> c.yaml:3:15
  |
3 | pools: { p: { wokers: 3 } }
  |               ^^^^^^
  = help: did you mean `workers`?

1 error
";
    assert_eq!(text, expected);
    assert!(!text.contains('\x1b'));
    assert!(load(&pool("wokers: 3")).problems.render(true).contains("\x1b[1;31merror"));
}

#[test]
fn c02_toml_has_the_same_names_and_places() {
    let text = "\
[inputs.in.generator]
count = 1_000
types = [\"a\"]

[pools.erp]
workers = 5
autopilot = true

[handlers.h]
on = \"a\"
pool = \"er\"
retry = { backoff = \"1s..2s\", attempts = \"x\" }
pass = {}
";
    let directory = tempfile::tempdir().unwrap();
    let loaded = load_with("c.toml", text, &[], directory.path());
    assert_eq!(
        loaded.lines(),
        [
            "7:1 unknown key `autopilot` in a pool",
            "11:8 there is no pool `er`",
            "12:42 `attempts` has to be a whole number from 1 to 1000000, but this is the text `x`",
        ]
    );
    let text =
        text.replace("autopilot = true\n", "").replace("\"er\"", "\"erp\"").replace("\"x\"", "3");
    let config = load_with("c.toml", &text, &[], directory.path()).good();
    assert_eq!((config.pools[1].workers, config.handlers[0].retry.attempts), (5, 3));
}

#[test]
fn syntax_errors_have_the_same_form() {
    let yaml = load("inputs: [a\nhandlers: }\n");
    assert!(
        yaml.text().contains("not valid YAML") && yaml.text().contains("--> c.yaml:"),
        "{}",
        yaml.text()
    );
    let directory = tempfile::tempdir().unwrap();
    let toml = load_with("c.toml", "a = 1\na = 2\n[b\n", &[], directory.path());
    assert!(
        toml.text().contains("not valid TOML") && toml.text().contains("--> c.toml:"),
        "{}",
        toml.text()
    );
    let empty = load_with("c.toml", "", &[], directory.path());
    assert_eq!(empty.lines(), ["1:1 the configuration is empty"]);
    for (text, expected) in [
        ("", "1:1 the configuration is empty"),
        ("# nothing\n", "1:1 the configuration is empty"),
        ("a: &x 1\nb: *x\n", "1:4 anchors and aliases are not supported"),
        ("a: !!str 1\n", "1:4 tags are not supported"),
        ("a: 1\n---\nb: 1\n", "2:1 a second document in the file"),
        ("just text\n", "1:1 the configuration is a mapping, but this is the text `just text`"),
    ] {
        assert_eq!(load(text).lines(), [expected], "{text:?}");
    }
}

#[test]
fn a_key_given_twice_is_an_error() {
    let loaded = load(&root("shutdown: { deadline: 1s }\nshutdown: { deadline: 2s }"));
    assert_eq!(loaded.lines(), ["4:1 `shutdown` is given twice"]);
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    let text = format!("a: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(load(&text).problems.errors(), 1);
}

#[test]
fn several_writers_share_a_device() {
    let text = root(
        "outputs: { o: { file: { path: /dev/null } }, p: { on: a, file: { path: /dev/null } } }",
    );
    load(&text).good();
}

#[test]
fn what_a_file_holds_does_not_steer_the_terminal() {
    let text = load(&pool("wor\u{9b}kers: \"\\e[2J\"")).text();
    assert!(text.contains("unknown key") && !text.contains(['\u{1b}', '\u{9b}']), "{text}");
    let text = load(&pool("workers: \"\\e[2J\"")).text();
    assert!(text.contains("has to be") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn c01_kinds_are_known_however_a_configuration_is_decoded() {
    let text = "inputs: { in: { file: { path: a } } }\nhandlers: { h: { on: a, pass: } }\n";
    let mut problems = Problems::new("greenroom.yaml", text);
    let root = Format::Yaml.parse(text, &mut problems).expect("a tree");
    let (config, _) = decode::<Config>(&root, Path::new(""), &mut problems);
    assert_eq!(config.expect("a configuration").inputs[0].kind.key(), "file");
}
