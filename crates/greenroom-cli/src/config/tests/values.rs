//! Values from elsewhere: the environment, files, `--set`; and that none of them is ever shown.

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
    let HandlerKind::Http(http) = &config.handlers[0].kind else { panic!("no http") };
    assert_eq!(*http.url, "http://user:hunter2@host/");
    assert_eq!(http.timeout, Duration::from_secs(3));
    assert_eq!(config.outputs[0].path().unwrap().file_name().unwrap(), "${x}-e");
}

#[test]
fn c08_references_that_lead_nowhere_are_errors_said_once() {
    for (value, expected) in [
        ("'${NONE}'", "the environment variable `NONE` is not set"),
        ("'${NONE'", "`${` without `}`"),
        ("'${1X}'", "names no environment variable"),
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
