//! The server of the tests, and streams on it that no other test uses.

use std::{
    collections::VecDeque,
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use async_nats::jetstream::{
    self,
    consumer::Info,
    stream::{Config, StorageType},
};
use bytes::Bytes;
use greenroom_bus::event::Event;
use greenroom_nats::NatsInput;

/// How to have these tests run.
pub(crate) const HOW: &str = "no NATS server: run `scripts/nats up 4333`, then the same command with GREENROOM_NATS=127.0.0.1:4333";

/// Where the server is; `None` where the tests have none, which is told past the capture of their
/// output.
pub(crate) fn address(test: &str) -> Option<String> {
    let address = known();
    if address.is_none() {
        // At once, so that no other line comes between; a closed standard
        // error is no reason to fail.
        let line = format!("{test}: not run: {HOW}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    address
}

pub(crate) fn known() -> Option<String> {
    std::env::var("GREENROOM_NATS").ok().filter(|address| !address.is_empty())
}

/// A name that no other test has, of this run or another one.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{}-{count}", std::process::id(), since.as_nanos())
}

/// A stream of its own, with subjects that begin with its name.
pub(crate) struct TestStream {
    pub(crate) address: String,
    pub(crate) name: String,
}

impl TestStream {
    /// A new one. `None` without a server.
    pub(crate) async fn new(test: &str) -> Option<Self> {
        Some(Self::at(address(test)?, StorageType::Memory).await)
    }

    /// A new one on this server.
    pub(crate) async fn at(address: String, storage: StorageType) -> Self {
        let stream = Self { address, name: unique("test") };
        stream.make(storage).await;
        stream
    }

    pub(crate) async fn make(&self, storage: StorageType) {
        let config = Config {
            name: self.name.clone(),
            subjects: vec![format!("{}.>", self.name)],
            storage,
            ..Config::default()
        };
        self.jetstream().await.create_stream(config).await.unwrap();
    }

    /// Changes its configuration.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut Config)) {
        let jetstream = self.jetstream().await;
        let stream = jetstream.get_stream(&self.name).await.unwrap();
        let mut config = stream.get_info().await.unwrap().config;
        change(&mut config);
        jetstream.update_stream(config).await.unwrap();
    }

    /// A connection of its own: nothing that a source does is seen through it.
    pub(crate) async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.address).await.unwrap())
    }

    /// A consumer that waits for one second, so that tests need not wait for more.
    pub(crate) fn options(&self) -> NatsInput {
        self.through(&self.address)
    }

    /// The same, by another address.
    pub(crate) fn through(&self, address: &str) -> NatsInput {
        NatsInput {
            ack_wait: Duration::from_secs(1),
            ..NatsInput::new(address, &self.name, "greenroom")
        }
    }

    /// Publishes events with these numbers, each with a key of its own if `keys` is 0, or of so
    /// many.
    pub(crate) async fn publish(&self, numbers: impl IntoIterator<Item = u64>, keys: u64) {
        let jetstream = self.jetstream().await;
        let mut answers = VecDeque::new();
        for number in numbers {
            let key = if keys == 0 { number } else { number % keys };
            let subject = format!("{}.{key}", self.name);
            answers.push_back(jetstream.publish(subject, event(number, key).into()).await.unwrap());
            // The client bounds how many answers are open.
            if answers.len() > 1_000 {
                answers.pop_front().unwrap().await.unwrap();
            }
        }
        for answer in answers {
            answer.await.unwrap();
        }
    }

    /// Publishes these bytes.
    pub(crate) async fn publish_bytes(&self, bytes: impl Into<Bytes>) {
        let jetstream = self.jetstream().await;
        let answer = jetstream.publish(format!("{}.in", self.name), bytes.into()).await.unwrap();
        answer.await.unwrap();
    }

    /// Publishes this with these lines before it, in bytes that no client would send.
    pub(crate) async fn publish_raw(&self, subject: &[u8], headers: &[u8], payload: &str) {
        let before = self.last_sequence().await;
        let mut server = std::net::TcpStream::connect(&self.address).unwrap();
        let subject = [self.name.as_bytes(), b".", subject].concat();
        let headers = [headers, b"\r\n\r\n"].concat();
        let (of_headers, all) = (headers.len(), headers.len() + payload.len());
        let sizes = format!(" {of_headers} {all}\r\n");
        let connect = b"CONNECT {\"verbose\":false,\"headers\":true}\r\nHPUB ";
        let parts = [connect, &*subject, sizes.as_bytes(), &headers, payload.as_bytes()];
        server.write_all(&[&parts.concat()[..], b"\r\n"].concat()).unwrap();
        until("it is stored", async || self.last_sequence().await > before).await;
    }

    async fn last_sequence(&self) -> u64 {
        let stream = self.jetstream().await.get_stream(&self.name).await.unwrap();
        stream.cached_info().state.last_sequence
    }

    /// What the server says of the consumer.
    pub(crate) async fn consumer(&self, name: &str) -> Info {
        let stream = self.jetstream().await.get_stream(&self.name).await.unwrap();
        stream.consumer_info(name).await.unwrap()
    }

    pub(crate) async fn remove(&self) {
        self.jetstream().await.delete_stream(&self.name).await.unwrap();
    }
}

fn event(number: u64, key: u64) -> Vec<u8> {
    let event = Event::builder(number.to_string(), "/test", "made").subject(key.to_string());
    let mut json = Vec::new();
    event.build().unwrap().write_json(&mut json);
    json
}

/// Waits until this is so; it is looked at now and then, since a server does not tell.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let patience = tokio::time::timeout(Duration::from_secs(60), async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(patience.await.is_ok(), "not so after a minute: {what}");
}
