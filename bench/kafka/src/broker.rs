//! The broker: one that is named, or one of our own for the time of a run.

use std::{
    env,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
};

use crate::Failure;

/// Of every topic.
pub const PARTITIONS: i32 = 12;
/// Of a broker of our own.
const PORT: &str = "12192";
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Broker {
    pub address: String,
    is_ours: bool,
}

impl Broker {
    /// # Errors
    /// None is named, and none can be started.
    pub fn open() -> Result<Self, Failure> {
        if let Some(address) = env::var("GREENROOM_KAFKA").ok().filter(|of| !of.is_empty()) {
            return Ok(Self { address, is_ours: false });
        }
        eprintln!("starting a broker on port {PORT}");
        let started = script().args(["up", PORT]).output()?;
        if !started.status.success() {
            let why = String::from_utf8_lossy(&started.stderr);
            return Err(format!("scripts/kafka up {PORT}: {why}").into());
        }
        let address = String::from_utf8(started.stdout)?.trim().to_owned();
        Ok(Self { address, is_ours: true })
    }

    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.address);
        config
    }

    /// Makes a topic, and waits until its partitions have leaders.
    pub fn create_topic(&self, name: &str) -> Result<(), Failure> {
        let admin: AdminClient<DefaultClientContext> = self.config().create()?;
        let topic = NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1));
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        for made in runtime.block_on(admin.create_topics(&[topic], &options))? {
            made.map_err(|(topic, code)| format!("topic {topic} cannot be made: {code}"))?;
        }
        let consumer: BaseConsumer = self.config().create()?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let found = consumer.fetch_metadata(Some(name), PATIENCE)?;
            let partitions = found.topics().iter().flat_map(|topic| topic.partitions());
            if partitions.filter(|partition| partition.leader() >= 0).count() == 12 {
                return Ok(());
            }
        }
        Err(format!("topic {name} does not come").into())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if self.is_ours {
            // Whatever it says: there is nothing else to be done.
            let _ = script().args(["down", PORT]).output();
        }
    }
}

fn script() -> Command {
    Command::new(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/kafka"))
}

/// A name that no other run has.
pub fn unique(name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{name}-{}", now.as_millis())
}
