//! The stream that all sides read.

use std::{
    collections::VecDeque,
    process,
    time::{Duration, Instant},
};

use async_nats::{
    Client,
    jetstream::{self, stream::Config},
};
use greenroom_bus::event::Event;

use crate::Failed;

/// As many as there are subjects, of which each is a key.
const KEYS: u64 = 1_000;

/// Data of an event.
const DATA: usize = 100;

/// Publishes under way at once while it is filled.
const UNDER_WAY: usize = 1_000;

/// How often the server is asked whether it has all acknowledgements.
const ASKED_EVERY: Duration = Duration::from_millis(5);

pub struct Filled {
    pub address: String,
    pub name: String,
    pub count: u64,
    client: Client,
    pub jetstream: jetstream::Context,
    bytes: u64,
}

impl Filled {
    pub async fn new(address: String, count: u64) -> Result<Self, Failed> {
        let client = async_nats::connect(&address).await?;
        let jetstream = jetstream::new(client.clone());
        let name = format!("bench-{}", process::id());
        let subjects = vec![format!("{name}.>")];
        let config = Config { name: name.clone(), subjects, ..Config::default() };
        jetstream.create_stream(config).await?;
        let mut filled = Self { address, name, count, client, jetstream, bytes: 0 };
        filled.fill().await?;
        Ok(filled)
    }

    async fn fill(&mut self) -> Result<(), Failed> {
        let (mut answers, data) = (VecDeque::new(), "x".repeat(DATA));
        for number in 0..self.count {
            let key = (number % KEYS).to_string();
            let subject = format!("{}.{key}", self.name);
            let event = Event::builder(number.to_string(), "/bench", "made").subject(key);
            let mut json = Vec::new();
            event.data_json(&data).build()?.write_json(&mut json);
            self.bytes += json.len() as u64;
            answers.push_back(self.jetstream.publish(subject, json.into()).await?);
            if answers.len() > UNDER_WAY
                && let Some(answer) = answers.pop_front()
            {
                answer.await?;
            }
        }
        for answer in answers {
            answer.await?;
        }
        Ok(())
    }

    pub fn version(&self) -> String {
        self.client.server_info().version
    }

    /// Of an event, on average.
    pub fn bytes(&self) -> u64 {
        self.bytes / self.count
    }

    /// When the server had all acknowledgements of this consumer.
    pub async fn acknowledged(&self, consumer: &str) -> Result<Instant, Failed> {
        let stream = self.jetstream.get_stream(&self.name).await?;
        loop {
            // There is none until its side has made it.
            if let Ok(info) = stream.consumer_info(consumer).await
                && (info.num_pending, info.num_ack_pending) == (0, 0)
            {
                return Ok(Instant::now());
            }
            tokio::time::sleep(ASKED_EVERY).await;
        }
    }

    pub async fn remove(&self) -> Result<(), Failed> {
        self.jetstream.delete_stream(&self.name).await?;
        Ok(())
    }
}
