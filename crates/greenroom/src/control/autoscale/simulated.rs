//! The autoscaler around a simulated pool.

use std::{collections::VecDeque, ops::Range};

use super::*;

/// How finely time passes.
const STEP: Duration = Duration::from_millis(1);
const STEPS_PER_SECOND: u64 = 1_000;

/// A pool whose handlers all take the same time.
struct SimulatedPool {
    now: u64,
    service: u64,
    queue: VecDeque<u64>,
    /// When each busy worker is done, the soonest first: with equal times,
    /// those that started first.
    in_hand: VecDeque<u64>,
    workers: usize,
    /// Arrivals that are due, in thousandths of a message.
    due: u64,
    handled: u64,
    busy_steps: u64,
    decisions: Vec<(u64, Decision)>,
    longest_wait: u64,
}

impl SimulatedPool {
    fn new(workers: usize, service: u64) -> Self {
        Self {
            now: 0,
            service,
            queue: VecDeque::new(),
            in_hand: VecDeque::new(),
            workers,
            due: 0,
            handled: 0,
            busy_steps: 0,
            decisions: Vec::new(),
            longest_wait: 0,
        }
    }

    fn step(&mut self, per_second: u64) {
        self.now += 1;
        self.due += per_second;
        let arrived = self.due / STEPS_PER_SECOND;
        self.due %= STEPS_PER_SECOND;
        self.queue.extend((0..arrived).map(|_| self.now));
        while self.in_hand.front().is_some_and(|done| *done <= self.now) {
            self.in_hand.pop_front();
            self.handled += 1;
        }
        while self.in_hand.len() < self.workers {
            let Some(arrived) = self.queue.pop_front() else { break };
            self.longest_wait = self.longest_wait.max(self.now - arrived);
            self.in_hand.push_back(self.now + self.service);
        }
        self.busy_steps += self.in_hand.len() as u64;
    }

    fn sample(&mut self) -> Sample {
        let busy = self.busy_steps as f64 / (self.workers as u64 * STEPS_PER_SECOND) as f64;
        let oldest = self.queue.front().map_or(0, |arrived| self.now - arrived);
        self.busy_steps = 0;
        Sample {
            at: self.now as u32 * STEP,
            queued: self.queue.len(),
            oldest: Duration::from_millis(oldest),
            busy,
            workers: self.workers,
            handled: std::mem::take(&mut self.handled),
        }
    }

    /// Lets these seconds pass with this many messages in each.
    fn run(&mut self, scaler: &mut Autoscaler, seconds: Range<u64>, per_second: u64) {
        self.longest_wait = 0;
        for second in seconds {
            (0..STEPS_PER_SECOND).for_each(|_| self.step(per_second));
            let sample = self.sample();
            if let Some(decision) = scaler.decide(&sample) {
                self.workers = decision.to;
                self.decisions.push((second, decision));
            }
        }
    }
}

fn scaler() -> Autoscaler {
    Autoscaler::new(Autoscale::between(2, 200)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn p23_a_pool_under_a_step_of_load_comes_to_be_in_time_and_stays_so() {
    let (mut pool, mut scaler) = (SimulatedPool::new(2, 100), scaler());
    pool.run(&mut scaler, 0..10, 10);
    assert_eq!(pool.decisions, [], "a load that fits changes nothing");
    pool.run(&mut scaler, 10..20, 400);
    assert!(pool.workers >= 40, "400 a second of 100 ms are 40 workers' work");
    pool.run(&mut scaler, 20..300, 400);
    assert!(pool.longest_wait <= 100, "waited {} ms", pool.longest_wait);
}

#[test]
fn p23_after_a_burst_the_size_settles_near_what_is_needed() {
    let (mut pool, mut scaler) = (SimulatedPool::new(2, 100), scaler());
    pool.run(&mut scaler, 0..200, 400);
    let settled = pool.workers;
    assert!((40..=60).contains(&settled), "{settled} workers for the work of 40");
    let before = pool.decisions.len();
    pool.run(&mut scaler, 200..600, 400);
    assert_eq!(pool.decisions.len(), before, "an even load is no reason to change");
    pool.run(&mut scaler, 600..700, 0);
    assert_eq!(pool.workers, 2);
}

#[test]
fn p23_slow_handlers_are_not_taken_for_idle_workers() {
    let (mut pool, mut scaler) = (SimulatedPool::new(100, 60_000), scaler());
    pool.run(&mut scaler, 0..1, 100);
    pool.run(&mut scaler, 1..61, 0);
    assert_eq!(pool.decisions, []);
    pool.run(&mut scaler, 61..130, 0);
    assert_eq!(pool.workers, 2);
}
