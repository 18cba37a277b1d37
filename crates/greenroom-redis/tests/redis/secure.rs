//! A server that wants TLS, and a user who is known to it (N05).

use std::{path::PathBuf, sync::Mutex, time::Duration};

use greenroom_config::Secret;
use greenroom_redis::{RedisInput, RedisTls, source::RedisSource};

use crate::{
    own_server::Server,
    reader::{Reader, numbers},
    server::TestStream,
};

fn certificate(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../greenroom-bus/tests/tls", name].iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_stream_is_read_over_tls_by_a_user_and_a_wrong_password_or_authority_is_told() {
    let tls_port = Mutex::new(0);
    let config = |port: u16| {
        *tls_port.lock().unwrap() = port;
        let file = |name| certificate(name).canonicalize().unwrap().display().to_string();
        format!(
            "tls-port {port}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n\
             tls-auth-clients yes\nuser ann on >hunter2 ~test-* +xreadgroup +xack +xclaim +xautoclaim +xpending +xgroup +xinfo\n",
            file("server.pem"),
            file("server.key"),
            file("ca.pem"),
        )
    };
    let Some(own) = Server::start_with("n05_secure", config) else { return };
    let stream = TestStream::fresh(own.address());
    stream.publish(0..20).await;
    let port = *tls_port.lock().unwrap();
    let input = |password: &str, ca: &str| {
        let (cert, key) = (Some(certificate("client.pem")), Some(certificate("client.key")));
        RedisInput {
            url: Secret(format!("rediss://ann:{password}@localhost:{port}")),
            tls: Some(RedisTls { ca: Some(certificate(ca)), cert, key }),
            connect_within: Duration::from_millis(100),
            ..stream.input("one")
        }
    };
    let mut reader = Reader::open(input("hunter2", "ca.pem")).await;
    assert_eq!(reader.finish(20).await, numbers(0..20));
    for (password, ca, told) in [
        ("hunter3", "ca.pem", "correct the user and the password"),
        ("hunter2", "other-ca.pem", "certificate"),
    ] {
        let error = RedisSource::open(input(password, ca), None).await.err().unwrap().to_string();
        assert!(error.contains(told) && !error.contains("hunter"), "{error}");
    }
    assert!(!format!("{:?}", input("hunter2", "ca.pem")).contains("hunter2"));
}
