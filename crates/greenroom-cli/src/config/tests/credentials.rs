//! Headers, credentials and certificates of `http` handlers and outputs (C08).

use super::{Loaded, load_with};

fn certificate(name: &str) -> Vec<u8> {
    let path = format!("{}/../greenroom-bus/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// A handler and an output with these options, beside the files of the tests.
fn both(options: &str) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    for name in ["ca.pem", "client.pem", "client.key", "server.key"] {
        std::fs::write(directory.path().join(name), certificate(name)).unwrap();
    }
    std::fs::write(directory.path().join("token"), "hunter2\n").unwrap();
    std::fs::write(directory.path().join("torn"), "hunter2\nhunter2\n").unwrap();
    let text = format!(
        "
inputs: {{ g: {{ generator: {{}} }} }}
handlers: {{ h: {{ on: '**', http: {{ url: 'https://localhost/in', {options} }} }} }}
outputs: {{ o: {{ http: {{ url: 'https://localhost/in', {options} }} }} }}
"
    );
    load_with("c.yaml", &text, &[], directory.path())
}

#[test]
fn c08_secrets_come_from_files_and_the_environment_and_nothing_prints_them() {
    let options = "headers: { x-key: 'file:token' }, auth: { bearer: 'file:token' }";
    let config = both(options).good();
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let http = &config.handlers[0].kind;
    let http = http.downcast_ref::<greenroom_bus::handler::http::HttpOptions>().unwrap();
    assert_eq!(http.headers[0].1, "hunter2");
    // A line end within is no part of a token, and no message says what it is part of.
    for options in [
        "auth: { bearer: 'file:torn' }",
        "headers: { x-key: 'file:torn' }",
        "headers: { ce-id: 'file:token' }",
        "auth: { bearer: 'hunter2 hunter2' }",
        "headers: { authorization: hunter2 }, auth: { bearer: hunter2 }",
    ] {
        let loaded = both(options);
        assert_eq!(loaded.problems.errors(), 2, "{options}: {}", loaded.text());
        let told = loaded.lines().join("\n");
        assert!(!told.contains("hunter2"), "{options}: {told}");
    }
}

#[test]
fn c08_certificates_that_cannot_be_used_are_told_at_their_option() {
    both("tls: { ca: ca.pem, cert: client.pem, key: client.key, server_name: a.b }").good();
    for (options, says) in [
        ("tls: { ca: nowhere.pem }", "cannot read"),
        ("tls: { ca: client.key }", "`ca` holds no certificate"),
        ("tls: { ca: ca.pem, cert: client.pem, key: server.key }", "`key` does not fit `cert`"),
        ("tls: { cert: client.pem, key: client.pem }", "`key` holds no private key"),
        ("tls: { cert: client.pem }", "`cert` without `key`"),
        ("tls: { server_name: a.b }", "`server_name` needs a `ca`"),
    ] {
        let loaded = both(options);
        assert_eq!(loaded.problems.errors(), 2, "{options}: {}", loaded.text());
        assert!(loaded.lines().iter().all(|line| line.contains(says)), "{}", loaded.text());
    }
}
