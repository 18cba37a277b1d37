//! A server that wants TLS, and one who is known to it (N05).

use async_nats::jetstream::stream::StorageType;
use greenroom_nats::{NatsAuth, NatsInput, NatsUser, kinds::NatsTls, source::NatsSource};

use crate::{own_server::Server, reader::Reader, server::TestStream};

/// A pair of NKeys that is used for nothing else.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

fn certificate(name: &str) -> std::path::PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../greenroom-bus/tests/tls", name].iter().collect()
}

/// One that takes others as well, such as the script that starts it.
fn config() -> String {
    let (cert, key) = (certificate("server.pem"), certificate("server.key"));
    format!(
        r#"
        tls {{ cert_file: {cert:?}, key_file: {key:?} }}
        allow_non_tls: true
        authorization {{ users: [
            {{ user: root, password: root }}
            {{ user: ann, password: hunter2 }}
            {{ nkey: {PUBLIC} }}
        ] }}
        no_auth_user: root"#
    )
}

fn secured(stream: &TestStream, ca: &str, auth: NatsAuth) -> NatsInput {
    let tls = NatsTls { ca: Some(certificate(ca)), cert: None, key: None, required: true };
    NatsInput {
        auth: Some(auth),
        tls: Some(tls),
        connect_within: std::time::Duration::from_secs(1),
        ..stream.options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_stream_is_read_over_tls_by_a_password_or_a_key_and_a_wrong_one_is_told() {
    let Some(own) = Server::start_with("n05_secure", &config()) else { return };
    let stream = TestStream::at(own.address(), StorageType::Memory).await;
    stream.publish(0..20, 5).await;
    let ann =
        |password: &str| NatsAuth::User(NatsUser { name: "ann".into(), password: password.into() });
    for (consumer, auth) in [("user", ann("hunter2")), ("nkey", NatsAuth::NKey(SEED.into()))] {
        let secured = secured(&stream, "ca.pem", auth);
        let mut reader = Reader::open(NatsInput { consumer: consumer.to_owned(), ..secured }).await;
        for (number, read) in reader.some(20).await.into_iter().enumerate() {
            assert_eq!(read.id, number.to_string());
            let subject = read.event.as_ref().unwrap().subject().unwrap().to_string();
            assert_eq!(subject, (number % 5).to_string());
            read.done();
        }
    }
    for (ca, auth, says) in [
        ("other-ca.pem", ann("hunter2"), "invalid peer certificate: UnknownIssuer; correct the"),
        ("ca.pem", ann("swordfish"), "refuses the credentials"),
        (
            "ca.pem",
            NatsAuth::NKey(SEED.replace("SUACSS", "SUACSX").as_str().into()),
            "refuses the credentials",
        ),
    ] {
        let refused = NatsSource::open(secured(&stream, ca, auth), None).await;
        let why = refused.map(|_| ()).unwrap_err().to_string();
        assert!(why.contains(says), "{says:?} in {why}");
        for secret in ["hunter2", "swordfish", &SEED[8..]] {
            assert!(!why.contains(secret), "{why}");
        }
    }
}
