//! What is measured.

use std::time::Duration;

use crate::{
    Failure,
    broker::{Broker, unique},
    made::Publisher,
    random::Random,
    side::Side,
    zipf::Zipf,
};

/// One kind of handler and of keys.
pub struct Row {
    pub name: &'static str,
    pub about: &'static str,
    /// Events at once.
    pub workers: usize,
    /// What each takes.
    pub work: Duration,
    keys: usize,
    is_even: bool,
    /// Of each run, unless the command line says otherwise.
    events: u64,
    /// What a virtual machine is given before, to compile what is measured.
    pub warm_up: u64,
    pub sides: &'static [Side],
}

pub const ROWS: [Row; 3] = [
    Row {
        name: "noop",
        about: "handlers that do nothing, 64 workers, 100,000 Zipf keys",
        workers: 64,
        work: Duration::ZERO,
        keys: 100_000,
        is_even: false,
        events: 400_000,
        warm_up: 50_000,
        sides: &[Side::Poll, Side::Copy, Side::Commit, Side::Greenroom, Side::Peer],
    },
    Row {
        name: "10ms",
        about: "handlers of 10 ms, 1,000 in flight, 1,000 Zipf keys",
        workers: 1_000,
        work: Duration::from_millis(10),
        keys: 1_000,
        is_even: false,
        events: 8_000,
        warm_up: 1_000,
        sides: &[Side::Greenroom, Side::Peer],
    },
    Row {
        name: "10ms-even",
        about: "handlers of 10 ms, 1,000 in flight, 1,000 keys, each as often",
        workers: 1_000,
        work: Duration::from_millis(10),
        keys: 1_000,
        is_even: true,
        events: 200_000,
        warm_up: 10_000,
        sides: &[Side::Greenroom, Side::Peer],
    },
];

impl Row {
    /// How many events, where the command line says so many for handlers that do nothing.
    pub fn events(&self, told: Option<u64>) -> u64 {
        told.filter(|_| self.work.is_zero()).unwrap_or(self.events)
    }

    /// Makes a topic of its own, and the events in it. How often its busiest key is among them.
    pub fn publish(&self, broker: &Broker, events: u64) -> Result<(String, u64), Failure> {
        let topic = unique(self.name);
        broker.create_topic(&topic)?;
        let (publisher, mut random) = (Publisher::new(broker, &topic)?, Random::new(1));
        let (zipf, mut of_key) = (Zipf::new(self.keys), vec![0; self.keys]);
        for number in 0..events {
            let key = match self.is_even {
                true => (number % self.keys as u64) as usize,
                false => zipf.draw(&mut random),
            };
            of_key[key] += 1;
            publisher.publish(number, key)?;
        }
        publisher.flush()?;
        Ok((topic, of_key.into_iter().max().unwrap_or(0)))
    }
}
