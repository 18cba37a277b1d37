//! The stream that all sides read.

use std::{
    process,
    time::{Duration, Instant},
};

use greenroom_bus::event::Event;
use redis::Client;

use crate::Failed;

/// As many as there are subjects, of which each is a key.
const KEYS: u64 = 1_000;

/// Data of an event.
const DATA: usize = 100;

/// Entries of one pipeline while it is filled.
const TOGETHER: u64 = 1_000;

/// How often the server is asked whether it has all acknowledgements.
const ASKED_EVERY: Duration = Duration::from_millis(5);

pub struct Filled {
    pub address: String,
    pub name: String,
    pub count: u64,
    pub client: Client,
    pub version: String,
    bytes: u64,
}

impl Filled {
    pub async fn new(address: String, count: u64) -> Result<Self, Failed> {
        let client = Client::open(format!("redis://{address}"))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        let version = version.unwrap_or("unknown").to_owned();
        let name = format!("bench-{}", process::id());
        let mut filled = Self { address, name, count, client, version, bytes: 0 };
        filled.fill().await?;
        Ok(filled)
    }

    async fn fill(&mut self) -> Result<(), Failed> {
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        let data = "x".repeat(DATA);
        let numbers: Vec<u64> = (0..self.count).collect();
        for some in numbers.chunks(TOGETHER as usize) {
            let mut pipeline = redis::pipe();
            for number in some {
                let key = (number % KEYS).to_string();
                let event = Event::builder(number.to_string(), "/bench", "made").subject(key);
                let mut json = Vec::new();
                event.data_json(&data).build()?.write_json(&mut json);
                self.bytes += json.len() as u64;
                pipeline.cmd("XADD").arg(&self.name).arg("*").arg("data").arg(json);
            }
            pipeline.exec_async(&mut connection).await?;
        }
        Ok(())
    }

    /// Of an event, on average.
    pub fn bytes(&self) -> u64 {
        self.bytes / self.count
    }

    /// When the server had all acknowledgements of this group.
    pub async fn acknowledged(&self, group: &str) -> Result<Instant, Failed> {
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        let asked = redis::cmd("XINFO").arg("GROUPS").arg(&self.name).take();
        loop {
            let groups: Vec<std::collections::HashMap<String, redis::Value>> =
                asked.query_async(&mut connection).await?;
            let name = redis::Value::BulkString(group.as_bytes().to_vec());
            let found = groups.iter().find(|facts| facts["name"] == name);
            let is_zero = |facts: &std::collections::HashMap<String, redis::Value>, fact: &str| {
                facts.get(fact) == Some(&redis::Value::Int(0))
            };
            // There is none until its side has made it.
            if found.is_some_and(|facts| is_zero(facts, "lag") && is_zero(facts, "pending")) {
                return Ok(Instant::now());
            }
            tokio::time::sleep(ASKED_EVERY).await;
        }
    }

    pub async fn remove(&self) -> Result<(), Failed> {
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        redis::cmd("DEL").arg(&self.name).exec_async(&mut connection).await?;
        Ok(())
    }
}
