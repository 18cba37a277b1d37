//! A log in memory, an intake before it, and a client that writes what it is told.

use std::{collections::HashSet, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, watch},
};

use crate::{
    BoxFuture,
    event::Event,
    source::http::{HttpSettings, Intake, ServerTls, listen},
    source::log::{AppendError, Appended, EventLog},
};

pub(super) const STRUCTURED: &str = "application/cloudevents+json";

pub(super) const BINARY: &str =
    "ce-specversion: 1.0\r\nce-id: binary\r\nce-source: s\r\nce-type: t\r\n";

/// A log in memory, which waits and fails as it is told.
#[derive(Default)]
pub(super) struct TestLog {
    events: Mutex<Vec<Event>>,
    fails: Mutex<Option<AppendError>>,
    held: Arc<RwLock<()>>,
    began: watch::Sender<usize>,
}

impl TestLog {
    /// Nothing is durable before this is dropped.
    pub(super) fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        self.held.clone().try_write_owned().unwrap()
    }

    pub(super) fn fail(&self, with: Option<AppendError>) {
        *self.fails.lock() = with;
    }

    /// Waits until so many appends have begun.
    pub(super) async fn began(&self, count: usize) {
        self.began.subscribe().wait_for(|began| *began >= count).await.unwrap();
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.events.lock().iter().map(|event| event.id().to_owned()).collect()
    }
}

impl EventLog for TestLog {
    fn describe(&self) -> String {
        "log:test".to_owned()
    }

    fn append<'a>(&'a self, events: Vec<Event>) -> BoxFuture<'a, Result<Appended, AppendError>> {
        self.began.send_modify(|began| *began += 1);
        Box::pin(async move {
            let _durable: RwLockReadGuard<'_, ()> = self.held.read().await;
            if let Some(error) = self.fails.lock().clone() {
                return Err(error);
            }
            let mut stored = self.events.lock();
            let mut known: HashSet<String> =
                stored.iter().map(|event| event.id().to_owned()).collect();
            let mut appended = Appended::default();
            for event in events {
                if known.insert(event.id().to_owned()) {
                    appended.stored += 1;
                    stored.push(event);
                } else {
                    appended.repeated += 1;
                }
            }
            Ok(appended)
        })
    }

    fn is_full(&self) -> bool {
        matches!(*self.fails.lock(), Some(AppendError::Full { .. }))
    }
}

/// An open intake.
pub(super) struct Stage {
    pub(super) log: Arc<TestLog>,
    pub(super) intake: Intake,
}

impl Stage {
    pub(super) fn open(settings: HttpSettings) -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let log = Arc::<TestLog>::default();
        let intake = Intake::new(listener, "/events", settings, log.clone()).unwrap();
        intake.open();
        Self { log, intake }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.intake.address()).await.unwrap()
    }

    pub(super) async fn ask(&self, message: &str) -> Answer {
        let mut connection = self.connect().await;
        connection.write_all(message.as_bytes()).await.unwrap();
        answer(&mut connection).await
    }

    pub(super) async fn post(&self, ty: &str, body: &str) -> Answer {
        self.ask(&post(ty, body)).await
    }
}

pub(super) fn head(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: h\r\n{headers}\r\n")
}

pub(super) fn post(ty: &str, body: &str) -> String {
    let headers = format!("content-type: {ty}\r\ncontent-length: {}\r\n", body.len());
    head("POST", "/events", &headers) + body
}

pub(super) fn event(id: &str) -> String {
    format!("{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"s\",\"type\":\"t\"}}")
}

pub(super) fn batch(ids: &[&str]) -> String {
    format!("[{}]", ids.iter().map(|id| event(id)).collect::<Vec<_>>().join(","))
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The next answer on a connection, which stays open.
pub(super) async fn answer(connection: &mut TcpStream) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, head, body: String::new() };
    let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.unwrap();
    answer.body = String::from_utf8(body).unwrap();
    answer
}

pub(super) fn pem(name: &str) -> Vec<u8> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");
    std::fs::read(format!("{directory}/{name}")).unwrap()
}

pub(super) fn server_tls(name: &str, asks: bool) -> ServerTls {
    ServerTls {
        cert: pem(&format!("{name}.pem")),
        key: pem(&format!("{name}.key")),
        client_ca: asks.then(|| pem("ca.pem")),
    }
}

pub(super) fn client_tls(identity: bool) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem("ca.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match identity {
        false => builder.with_no_client_auth(),
        true => {
            let chain = pem("client.pem");
            let chain = CertificateDer::pem_slice_iter(&chain).map(Result::unwrap);
            let key = PrivateKeyDer::from_pem_slice(&pem("client.key")).unwrap();
            builder.with_client_auth_cert(chain.collect(), key).unwrap()
        }
    })
}
