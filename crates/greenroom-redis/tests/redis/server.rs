//! The server of the tests, and streams on it that no other test uses.

use std::{
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use greenroom_bus::event::Event;
use greenroom_redis::RedisInput;
use redis::aio::MultiplexedConnection;

/// How to have these tests run.
pub(crate) const HOW: &str = "no Redis server: run `scripts/redis up 6380`, then the same command with GREENROOM_REDIS=127.0.0.1:6380";

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
    std::env::var("GREENROOM_REDIS").ok().filter(|address| !address.is_empty())
}

/// A name that no other test has, of this run or another one.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{}-{count}", std::process::id(), since.as_nanos())
}

/// A connection of its own: nothing that a source does is seen through it.
pub(crate) async fn connect(address: &str) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// The group of all tests.
pub(crate) const GROUP: &str = "greenroom";

/// A stream of its own.
pub(crate) struct TestStream {
    pub(crate) address: String,
    pub(crate) name: String,
}

impl TestStream {
    /// `None` without a server.
    pub(crate) fn new(test: &str) -> Option<Self> {
        address(test).map(Self::fresh)
    }

    /// On this server.
    pub(crate) fn fresh(address: String) -> Self {
        Self { address, name: unique("test") }
    }

    /// As this consumer. What is left is claimed after a minute, unless a test says otherwise.
    pub(crate) fn input(&self, consumer: &str) -> RedisInput {
        let url = format!("redis://{}", self.address);
        RedisInput::new(url, [&self.name], GROUP, consumer)
    }

    pub(crate) async fn add(&self, fields: &[(&str, &str)]) -> String {
        let mut connection = connect(&self.address).await;
        let add = redis::cmd("XADD").arg(&self.name).arg("*").arg(fields).take();
        add.query_async(&mut connection).await.unwrap()
    }

    /// Adds events with these numbers as their ids.
    pub(crate) async fn publish(&self, numbers: impl IntoIterator<Item = u64>) {
        self.publish_as("*", numbers).await;
    }

    /// As `publish`, with this id.
    pub(crate) async fn publish_as(&self, id: &str, numbers: impl IntoIterator<Item = u64>) {
        let (mut pipeline, mut connection) = (redis::pipe(), connect(&self.address).await);
        for number in numbers {
            let event = Event::builder(number.to_string(), "/test", "made").build().unwrap();
            let mut json = Vec::new();
            event.write_json(&mut json);
            pipeline.cmd("XADD").arg(&self.name).arg(id).arg("data").arg(json);
        }
        pipeline.exec_async(&mut connection).await.unwrap();
    }

    pub(crate) async fn run<T: redis::FromRedisValue>(&self, command: &str, args: &[&str]) -> T {
        let mut connection = connect(&self.address).await;
        let command = redis::cmd(command).arg(args).take();
        command.query_async(&mut connection).await.unwrap()
    }

    /// What this consumer has and has not acknowledged.
    pub(crate) async fn pending(&self, consumer: &str) -> usize {
        let args = [&self.name, GROUP, "-", "+", "10000", consumer];
        let pending: Vec<redis::Value> = self.run("XPENDING", &args).await;
        pending.len()
    }
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
