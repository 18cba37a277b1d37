//! Values from elsewhere: the environment, files, `--set`; and that none of them is ever shown.

use greenroom_bus::handler::http::HttpOptions;

use super::*;

#[test]
fn c08_values_refer_to_the_environment_and_to_files() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret"), "http://user:hunter2@host/\n").unwrap();
    let text = format!(
        "{BASE}handlers: {{ h: {{ on: a, pool: p, http: {{ url: 'file:secret', timeout: '${{T:-3s}}' }} }} }}\n\
         pools: {{ p: {{ workers: '${{WORKERS}}', queue: '${{NONE:-1_000}}' }} }}\n\
         outputs: {{ o: {{ file: {{ path: '$${{x}}-${{EMPTY:-e}}' }} }} }}\n"
    );
    let config = load_with("c.yaml", &text, &[], directory.path()).good();
    let pool = config.pools.iter().find(|pool| pool.name == "p").unwrap();
    assert_eq!((pool.workers, pool.queue), (7, 1000));
    let http = config.handlers[0].kind.downcast_ref::<HttpOptions>().unwrap();
    let url = http.url.to.as_ref().unwrap();
    assert_eq!(**url, "http://user:hunter2@host/");
    assert_eq!(http.timeout, Duration::from_secs(3));
    assert_eq!(config.outputs[0].path().unwrap().file_name().unwrap(), "${x}-e");
}

#[test]
fn c08_a_default_may_hold_references_which_are_looked_at_only_where_it_is_needed() {
    let path = |value: &str| {
        let config =
            load(&root(&format!("outputs: {{ o: {{ file: {{ path: '{value}' }} }} }}"))).good();
        config.outputs[0].path().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
    };
    for (value, is) in [
        ("${NONE:-${SECRET}}", "hunter2"),
        ("${NONE:-${EMPTY:-${SECRET}}}", "hunter2"),
        ("a-${NONE:-b-${NONE:-c}-d}-e", "a-b-c-d-e"),
        ("${NONE:-${EMPTY:-}${WORKERS}}}", "7}"),
        ("${SECRET:-${NONE}}", "hunter2"),
        ("${NONE:-$${x}}", "${x}"),
        ("${NONE:-ü${NONE:-ö}}", "üö"),
    ] {
        assert_eq!(path(value), is, "{value}");
    }
}

#[test]
fn c08_references_that_lead_nowhere_are_errors_said_once() {
    for (value, expected) in [
        ("'${NONE}'", "the environment variable `NONE` is not set"),
        ("'${NONE'", "`${` without `}`"),
        ("'${NONE:-${EMPTY}'", "`${` without `}`"),
        ("'${NONE:-${ALSO_NONE}}'", "the environment variable `ALSO_NONE` is not set"),
        ("'${${SECRET}}'", "is not the name of an environment variable"),
        (
            &*format!("'{}'", "${NONE:-".repeat(100_000) + &"}".repeat(100_000)),
            "more than 16 defaults",
        ),
        ("'${1X}'", "is not the name of an environment variable"),
        ("'file:no/such'", "cannot read `file:no/such`"),
    ] {
        for wrapped in
            [pool(&format!("workers: {value}")), handler(&format!("http: {{ url: {value} }}"))]
        {
            let loaded = load(&wrapped);
            assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
            assert!(loaded.text().contains(expected), "{}", loaded.text());
        }
    }
}

#[test]
fn c10_a_value_from_the_environment_is_never_shown() {
    for text in [
        pool("workers: '${SECRET}'"),
        pool("on_full: '${SECRET}'"),
        pool("onFull: 'x${SECRET}'"),
        handler("http: { url: '${SECRET}' }"),
        handler("http: { url: 'http://a', timeout: '${SECRET}' }"),
        handler("pass: {}, pool: '${SECRET}'"),
        handler("pass: {}, order_by: '${SECRET}_'"),
        handler("exec: { command: ['${SECRET}'] }"),
        handler("exec: { command: [sh], cwd: '${SECRET}' }"),
        generator("rate: '${SECRET}'"),
        generator("types: ['${SECRET}']\n}}, x: {file: {path: '${SECRET}'"),
        root("outputs: { o: { on: '${SECRET}*', file: { path: 'no/${SECRET}' } } }"),
        root("no_handler: '${SECRET}'"),
        root("dead_letters: '${SECRET}'"),
    ] {
        let loaded = load(&text);
        assert!(loaded.problems.errors() > 0, "{text}");
        assert!(!loaded.text().contains("hunter2"), "{}", loaded.text());
        assert!(loaded.text().contains("${SECRET}"), "{}", loaded.text());
    }
}

#[test]
fn c10_an_excerpt_shows_no_secret_whatever_is_wrong_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let http = |rest: &str| handler(&format!("http: {{ url: 'http://a/', {rest} }}"));
    for text in [
        handler("http: { url: 'http://a/?k=hunter2', timeout: x }"),
        handler("http: { url: \"https://u:hunter2@a:80/b#hunter2\", timeout: x }"),
        handler("http: { url: hunter2, timeout: x }"),
        handler("htp: { url: 'http://u:hunter2@a/' }"),
        http("timeout: x, auth: { bearer: hunter2 }"),
        http("auth: { bearr: hunter2 }"),
        http("auth: hunter2"),
        http("auth: [hunter2]"),
        http("auth: { basic: { user: u, password: hunter2, x: 1 } }"),
        http("auth: { basic: hunter2 }"),
        http("timeout: x, headers: { x-key: 'hunter2' }"),
        http("headers: hunter2"),
        http("headers: [hunter2]"),
        handler("exec: { command: [sh, '--token=hunter2'], timeout: x }"),
        handler("exec: { command: sh hunter2 }"),
        root("admin: { token: '${NONE:-hunter2}', listen: x }"),
        root("admin: { tokn: hunter2 }"),
        root("admin: hunter2"),
        root("nobody_knows: { this: [hunter2] }"),
        root("admin: { token: 'hunter2 }"),
        root("admin: { token: !x hunter2 }"),
        root("admin: { token: &hunter2 x }"),
        root("admin: { token: \"hunter2 ü\", token: x }"),
        root("admin:\n  token: \"hunter2\n    x\"\n  token: x"),
        root("admin: { token: hunter2 }\n---\n"),
    ] {
        let loaded = load_with("c.yaml", &text, &[], directory.path());
        assert!(loaded.problems.errors() > 0, "{text}");
        assert!(!loaded.text().contains("hunter2"), "{}", loaded.text());
    }
    for text in ["[admin]\ntoken = 'hunter2'\nlisten = 'x'\n", "[admin]\ntoken = 'hunter2\n"] {
        let loaded = load_with("c.toml", text, &[], directory.path());
        assert!(
            loaded.problems.errors() > 0 && !loaded.text().contains("hunter2"),
            "{}",
            loaded.text()
        );
    }
    let number = load(&http("auth: { basic: { user: u, password: 43112609 } }"));
    assert!(number.text().contains("but this is a number") && !number.text().contains("43112609"));
    let url = load(&handler("http: { url: 'http://u:p@host/in?k=1', timeout: x }"));
    assert!(url.text().contains("url: 'http://***@host/in?***', timeout: x"), "{}", url.text());
}

#[test]
fn c10_debug_output_of_a_configuration_shows_no_secret() {
    let text = format!(
        "{BASE}handlers:\n  h: {{ on: a, http: {{ url: 'http://u:${{SECRET}}@h/' }} }}\n  \
         e: {{ on: b, exec: {{ command: [sh, '${{SECRET}}'], env: {{ K: '${{SECRET}}' }} }} }}\n"
    );
    let config = load(&text).good();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn c01_settings_are_put_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let settings =
        ["pools.p.workers=9", "shutdown.deadline=1m", "handlers.h.on=[a, b]", "no_handler=ignore"];
    let config = load_with("c.yaml", &pool("workers: 2"), &settings, directory.path()).good();
    assert_eq!(config.pools[1].workers, 9);
    assert_eq!(config.shutdown.deadline, Duration::from_secs(60));
    assert_eq!(config.handlers[0].on, ["a", "b"]);
    assert_eq!(config.no_handler, NoHandler::Ignore);
}

#[test]
fn c01_a_setting_names_standard_input_and_output() {
    let directory = tempfile::tempdir().unwrap();
    let settings = ["inputs.i.file.path=-", "outputs.o.file.path=-"];
    let config = load_with("c.yaml", &pool("workers: 2"), &settings, directory.path()).good();
    assert!(config.has_standard_output());
}

#[test]
fn c01_wrong_settings_are_told_by_their_name_without_their_value() {
    let directory = tempfile::tempdir().unwrap();
    for (setting, expected) in [
        ("pools.p.workers=hunter2", "--set pools.p.workers `workers` has to be"),
        ("pools.p.wokers=3", "--set pools.p.wokers unknown key `wokers`"),
        ("pools.p", "--set pools.p a setting is written"),
        ("pools..p=1", "--set pools..p a setting is written"),
        ("pools.p.workers.x=1", "--set pools.p.workers.x `x` cannot be set inside"),
        ("pools.p=[", "--set pools.p the value of this setting is not valid YAML"),
    ] {
        let loaded = load_with("c.yaml", &pool("workers: 2"), &[setting], directory.path());
        assert!(loaded.lines()[0].starts_with(expected), "{:?}", loaded.lines());
        assert!(!loaded.text().contains("hunter2"), "{}", loaded.text());
    }
}

#[test]
fn v03_an_audit_watches_a_share_of_the_keys_and_none_if_it_is_not_asked_for() {
    let share = |text: &str| load(&root(text)).good().audit.map(|audit| audit.share);
    assert_eq!(share(""), None);
    assert_eq!(share("audit: {}"), Some(0.01));
    assert_eq!(share("audit: { share: 1 }"), Some(1.0));
    assert!(load(&root("audit: { share: 1.5 }")).text().contains("from 0 to 1"));
}
