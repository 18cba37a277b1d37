//! TLS and credentials against a server that wants them.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, mpsc},
    thread,
};

use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use super::{
    Allow, Auth, BadAuth, BasicAuth, EventUrl, Identity, TargetConfig, Tls, check_auth,
    connection::{Connection, NoAnswer},
    credentials::Identification,
    event_url::EventTargets,
    message::{self, Mode},
};
use crate::{event::Event, http::check_tls};

fn pem(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn chain(name: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(&pem(name)).map(Result::unwrap).collect()
}

/// A server with the certificate of this name, which wants one of its clients where `knows` is set.
/// It tells what it was sent, and answers 204.
fn server(name: &str, knows: bool) -> (String, mpsc::Receiver<String>) {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match knows {
        false => builder.with_no_client_auth(),
        true => {
            let mut roots = RootCertStore::empty();
            roots.add(chain("ca.pem").remove(0)).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&pem(&format!("{name}.key"))).unwrap();
    let config = builder.with_single_cert(chain(&format!("{name}.pem")), key).unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut request = vec![0; 64 * 1024];
            // Fails where one side does not trust the other.
            let Ok(read) = stream.read(&mut request) else { continue };
            let _ = tell.send(String::from_utf8_lossy(&request[..read]).into_owned());
            let _ = stream.write_all(b"HTTP/1.1 204 Yes\r\nconnection: close\r\n\r\n");
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (url, told)
}

async fn post(config: &TargetConfig) -> Result<u16, NoAnswer> {
    let connection = Connection::new(config).unwrap();
    let event = Event::builder("1", "s", "t").build().unwrap();
    let attempt = message::SentAttempt { number: 1, fence: None };
    let request = message::single(&connection, Mode::Binary, &event, attempt).unwrap();
    connection.send(request).await.map(|response| response.status().as_u16())
}

fn with(url: &str, tls: Tls) -> TargetConfig {
    TargetConfig { url: url.into(), tls, ..TargetConfig::default() }
}

fn trusting(ca: &str) -> Tls {
    Tls { ca: Some(pem(ca)), ..Tls::default() }
}

fn client() -> Option<Identity> {
    Some(Identity { cert: pem("client.pem"), key: pem("client.key") })
}

#[tokio::test]
async fn u01_an_authority_of_ones_own_is_trusted_and_no_other() {
    let (url, _told) = server("server", false);
    assert_eq!(post(&with(&url, trusting("ca.pem"))).await.unwrap(), 204);
    for tls in [trusting("other-ca.pem"), Tls::default()] {
        let none = post(&with(&url, tls)).await.unwrap_err();
        assert!(none.untrusted && !none.reached, "{none:?}");
        assert!(none.text.contains("cannot connect to") && none.text.contains("`tls`"), "{none:?}");
    }
}

#[tokio::test]
async fn u01_a_certificate_has_to_be_for_the_host_or_the_name_that_is_configured() {
    let (url, _told) = server("renamed", false);
    let none = post(&with(&url, trusting("ca.pem"))).await.unwrap_err();
    assert!(none.untrusted, "{none:?}");
    let named = |name: &str| Tls { server_name: Some(name.into()), ..trusting("ca.pem") };
    assert_eq!(post(&with(&url, named("target.internal"))).await.unwrap(), 204);
    assert!(post(&with(&url, named("localhost"))).await.unwrap_err().untrusted);
}

#[tokio::test]
async fn q12_the_certificate_has_to_be_for_the_name_that_the_event_has() {
    for (certificate, fits) in [("server", true), ("renamed", false)] {
        let (url, _told) = server(certificate, false);
        let mut allow = Allow::default();
        for entry in ["https://localhost:*/**", "127.0.0.0/8"] {
            allow.push(entry).unwrap();
        }
        let from = EventUrl { from: "subject".parse().unwrap(), allow };
        let targets = EventTargets::new(&with("", trusting("ca.pem")), &from, None).unwrap();
        let event = Event::builder("1", "s", "t").subject(&url).build().unwrap();
        let target = targets.target(&event).unwrap();
        let attempt = message::SentAttempt { number: 1, fence: None };
        let request = message::single(&target, Mode::Binary, &event, attempt).unwrap();
        match target.send(request).await {
            Ok(response) => assert!(fits && response.status() == 204),
            Err(none) => assert!(!fits && none.untrusted, "{none:?}"),
        }
    }
}

#[tokio::test]
async fn u01_a_client_shows_its_certificate() {
    let (url, _told) = server("server", true);
    let tls = Tls { identity: client(), ..trusting("ca.pem") };
    assert_eq!(post(&with(&url, tls)).await.unwrap(), 204);
    let none = post(&with(&url, trusting("ca.pem"))).await.unwrap_err();
    assert!(none.untrusted, "the target wants one: {none:?}");
}

#[tokio::test]
async fn u04_whether_credentials_are_sent_is_claimed_only_where_it_is_known() {
    let of = |config: TargetConfig| Connection::new(&config).unwrap().link.identification;
    let plain = || with("https://localhost/in", trusting("ca.pem"));
    assert_eq!(of(plain()), Identification::Missing);
    let headers = |name: &str| vec![(name.to_owned(), "secret".to_owned())];
    let by_key = TargetConfig { headers: headers("x-api-key"), ..plain() };
    let by_query = with("https://localhost/in?key=secret", Tls::default());
    for config in [by_key, by_query] {
        assert_eq!(of(config), Identification::Unknown);
    }
    let by_header = TargetConfig { headers: headers("authorization"), ..plain() };
    let by_auth = TargetConfig { auth: Some(Auth::Bearer("secret".into())), ..plain() };
    let by_url = with("https://me:secret@localhost/in?a=1", Tls::default());
    let by_certificate =
        with("https://localhost/in?a=1", Tls { identity: client(), ..Tls::default() });
    for config in [by_header, by_auth, by_url, by_certificate] {
        assert_eq!(of(config), Identification::Known);
    }
}

#[tokio::test]
async fn c08_credentials_are_sent_and_never_shown() {
    let (url, told) = server("server", false);
    let basic = Auth::Basic(BasicAuth { user: "me".into(), password: "hunter2:x".into() });
    for (auth, sent) in [
        (basic, "authorization: Basic bWU6aHVudGVyMjp4\r\n"),
        (Auth::Bearer("hunter2".into()), "authorization: Bearer hunter2\r\n"),
    ] {
        let headers = vec![("x-key".to_owned(), "hunter2".to_owned())];
        let config = TargetConfig {
            auth: Some(auth),
            headers,
            ..with(&url, Tls { identity: client(), ..trusting("ca.pem") })
        };
        assert_eq!(post(&config).await.unwrap(), 204);
        let request = told.recv().unwrap();
        assert!(request.contains(sent) && request.contains("x-key: hunter2\r\n"), "{request}");
        let connection = Connection::new(&config).unwrap();
        let shown = format!("{config:?} {connection:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("bWU6"), "{shown}");
        assert!(!shown.contains("BEGIN"), "{shown}");
    }
}

#[tokio::test]
async fn c08_credentials_that_cannot_be_sent_are_refused_without_them() {
    let bearer = |token: &str| Auth::Bearer(token.into());
    let basic =
        |user: &str| Auth::Basic(BasicAuth { user: user.into(), password: "hunter2".into() });
    assert_eq!(check_auth(&bearer("hunter2\n")), Err(BadAuth::Token));
    assert_eq!(check_auth(&basic("a:b")), Err(BadAuth::Colon));
    let refused = |config: TargetConfig| {
        let why = Connection::new(&config).map(drop).unwrap_err();
        assert!(!why.contains("hunter2"), "{why}");
        why
    };
    let url = "http://localhost/";
    let config = TargetConfig { auth: Some(bearer("hunter2 ")), ..with(url, Tls::default()) };
    assert!(refused(config).contains("the token has a character"));
    let headers = vec![("Authorization".to_owned(), "hunter2".to_owned())];
    let both = TargetConfig { auth: Some(basic("me")), headers, ..with(url, Tls::default()) };
    assert!(refused(both).contains("a header `authorization`"));
    let in_url = with("http://me:hunter2@localhost/", Tls::default());
    let both = TargetConfig { auth: Some(basic("me")), ..in_url };
    assert!(refused(both).contains("credentials in the URL"));
    assert!(refused(with(url, trusting("ca.pem"))).contains("is for an https URL"));
}

#[test]
fn c08_certificates_that_cannot_be_used_say_which_and_why() {
    let why = |tls: Tls| check_tls(&tls).unwrap_err().to_string();
    let garbage = || Some(b"no certificate".to_vec());
    assert!(why(Tls { ca: garbage(), ..Tls::default() }).starts_with("`ca` holds no certificate"));
    let other = Identity { cert: pem("client.pem"), key: pem("server.key") };
    for ca in [None, Some(pem("ca.pem"))] {
        let tls = Tls { ca: ca.clone(), identity: Some(other.clone()), ..Tls::default() };
        assert!(why(tls).starts_with("`key` does not fit `cert`"));
        let identity = Some(Identity { cert: pem("client.pem"), key: pem("client.pem") });
        assert!(
            why(Tls { ca, identity, ..Tls::default() }).starts_with("`key` holds no private key")
        );
    }
    let identity = Some(Identity { cert: pem("client.key"), key: pem("client.key") });
    assert!(why(Tls { identity, ..Tls::default() }).starts_with("`cert` holds no certificate"));
    let server_name = Some("target.internal".to_owned());
    assert!(why(Tls { server_name, ..Tls::default() }).starts_with("`server_name` needs a `ca`"));
    let server_name = Some("no name".to_owned());
    assert!(why(Tls { server_name, ..trusting("ca.pem") }).contains("is no host name"));
    assert_eq!(check_tls(&Tls { identity: client(), ..trusting("ca.pem") }), Ok(()));
}
