//! What is published, and when.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{Failure, broker::Broker, made::Publisher, random::Random, zipf::Zipf};

/// The key of each event, by its number.
pub struct Published(Vec<u32>);

impl Published {
    pub fn draw(events: u64, keys: usize, seed: u64) -> Self {
        let (zipf, mut random) = (Zipf::new(keys), Random::new(seed));
        Self((0..events).map(|_| zipf.draw(&mut random) as u32).collect())
    }

    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn key(&self, number: u64) -> usize {
        self.0[number as usize] as usize
    }
}

/// Publishes all of it, evenly over this time.
pub fn over(
    broker: &Broker,
    topic: &str,
    published: Arc<Published>,
    time: Duration,
) -> JoinHandle<Result<(), Failure>> {
    let publisher = Publisher::new(broker, topic);
    thread::spawn(move || {
        let (publisher, begun) = (publisher?, Instant::now());
        for number in 0..published.count() {
            let due = time.mul_f64(number as f64 / published.count() as f64);
            // In small bursts: a sleep takes longer than the time between two events.
            if due > begun.elapsed() + Duration::from_millis(2) {
                thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            publisher.publish(number, published.key(number))?;
        }
        publisher.flush()
    })
}
