//! The judge and a simulated pool, whose operator follows each advice.

use std::collections::VecDeque;

use super::{
    period::{Look, Period},
    *,
};

const MILLI: Duration = Duration::from_millis(1);
const LOOK: u64 = 1_000;
const PERIOD: u64 = 300_000;

/// A pool whose handlers all take the same time. A step is a millisecond.
struct SimulatedPool {
    now: u64,
    service: u64,
    each: usize,
    workers: usize,
    most_workers: usize,
    /// The arrival time of each message: first those that wait outside, for room.
    outside: VecDeque<u64>,
    queue: VecDeque<u64>,
    /// When each worker that is busy is done, and when its message came in.
    in_hand: VecDeque<(u64, u64)>,
    full: bool,
    inbox_full: u64,
    times: Vec<u64>,
    started: u64,
    period: Period,
    advice: Vec<(u64, Advice)>,
}

impl SimulatedPool {
    fn new(workers: usize, each: usize, service: u64) -> Self {
        Self {
            now: 0,
            service,
            each,
            workers,
            most_workers: 1_000,
            outside: VecDeque::new(),
            queue: VecDeque::new(),
            in_hand: VecDeque::new(),
            full: false,
            inbox_full: 0,
            times: Vec::new(),
            started: 0,
            period: Period::begin(Figures::of(Inbox::PerWorker(each), workers)),
            advice: Vec::new(),
        }
    }

    fn capacity(&self) -> usize {
        self.each * self.workers
    }

    fn step(&mut self, arrivals: u64) {
        self.now += 1;
        self.outside.extend((0..arrivals).map(|_| self.now));
        while let Some((done, since)) = self.in_hand.front().copied().filter(|it| it.0 <= self.now)
        {
            self.in_hand.pop_front();
            self.times.push(done - since);
        }
        self.admit();
        while self.in_hand.len() < self.workers {
            let Some(since) = self.queue.pop_front() else { break };
            self.started += 1;
            self.in_hand.push_back((self.now + self.service, since));
        }
        self.admit();
        self.full &= self.queue.len() > self.capacity() / 2;
    }

    fn admit(&mut self) {
        while self.queue.len() < self.capacity() && self.outside.pop_front().is_some() {
            self.queue.push_back(self.now);
        }
        if !self.outside.is_empty() && !self.full {
            self.full = true;
            self.inbox_full += 1;
        }
    }

    fn look(&mut self) {
        self.period.look(&Look {
            queued: self.queue.len(),
            capacity: self.capacity(),
            busy: self.in_hand.len(),
            workers: self.workers,
        });
    }

    fn figures(&mut self) -> Figures {
        self.times.sort_unstable();
        let p99 = self.times.get(self.times.len() * 99 / 100).map(|time| *time as u32 * MILLI);
        self.times.clear();
        let (at, inbox_full, started) = (self.now as u32 * MILLI, self.inbox_full, self.started);
        let (workers, most_workers) = (self.workers, self.most_workers);
        let settings = Figures::of(Inbox::PerWorker(self.each), workers);
        self.period.end(Figures { at, most_workers, inbox_full, p99, started, ..settings })
    }

    fn follow(&mut self, advice: &Advice) {
        let Some(change) = advice.change else { return };
        self.each = change.inbox.map_or(self.each, |line| line.to);
        self.workers = change.workers.map_or(self.workers, |line| line.to);
    }

    /// Lets these periods pass, with this many arrivals at each millisecond.
    fn run(&mut self, judge: &mut Judge, periods: u64, arrivals: impl Fn(u64) -> u64) {
        for _ in 0..periods {
            for step in 0..PERIOD {
                self.step(arrivals(self.now));
                // Not on the second, when the bursts come.
                if step % LOOK == LOOK * 3 / 10 {
                    self.look();
                }
            }
            let figures = self.figures();
            let advice = judge.advise(&figures);
            self.follow(&advice);
            self.advice.push((self.now / PERIOD, advice));
        }
    }

    fn rules(&self) -> Vec<Finding> {
        self.advice.iter().map(|(_, advice)| advice.finding).collect()
    }

    /// The changes of the inbox, each with its period.
    fn acts(&self) -> Vec<(u64, usize, usize)> {
        let line = |(period, advice): &(u64, Advice)| {
            let line = advice.change?.inbox?;
            Some((*period, line.from, line.to))
        };
        self.advice.iter().filter_map(line).collect()
    }
}

fn judge() -> Judge {
    Judge::new(Advisor::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A burst of this many every two seconds, and nothing between.
fn bursts(of: u64) -> impl Fn(u64) -> u64 {
    move |now| if now.is_multiple_of(2_000) { of } else { 0 }
}

#[test]
fn h10_bursts_that_do_not_fit_get_an_inbox_in_which_they_do() {
    // Each is handled within 100 ms, so callers are content but for having to wait.
    let (mut pool, mut judge) = (SimulatedPool::new(20, 10, 4), judge());
    pool.run(&mut judge, 8, bursts(450));
    assert_eq!(pool.acts(), [(1, 10, 20), (2, 20, 40)]);
    assert_eq!(pool.rules()[..3], [Finding::Shallow, Finding::Shallow, Finding::Fine]);
    assert_eq!(pool.advice.last().map(|(_, advice)| advice.figures.inbox_full), Some(0));
    pool.run(&mut judge, 24, bursts(450));
    assert_eq!(pool.acts().len(), 2, "nothing goes to and fro");
}

#[test]
fn h10_a_slow_handler_gets_workers_and_a_shorter_queue_until_it_is_in_time() {
    // 50 ms for each, 400 a second: the work of 20, and there are 8. Senders
    // wait at the full inbox.
    let (mut pool, mut judge) = (SimulatedPool::new(8, 100, 50), judge());
    pool.run(&mut judge, 10, |now| u64::from(now % 5 < 2));
    assert_eq!(pool.rules()[0], Finding::LongQueue);
    assert!((20..=40).contains(&pool.workers), "{} workers", pool.workers);
    let (_, last) = pool.advice[9];
    assert!(last.finding.number() == 3, "{last}");
    assert!(last.figures.p99 <= Some(100 * MILLI));
}

#[test]
fn h10_a_handler_that_is_slow_without_a_queue_is_its_authors_affair() {
    let (mut pool, mut judge) = (SimulatedPool::new(100, 100, 300), judge());
    pool.run(&mut judge, 4, |now| u64::from(now % 10 == 0));
    assert_eq!(pool.rules(), [Finding::SlowHandler; 4]);
    assert_eq!((pool.each, pool.workers), (100, 100));
}

#[test]
fn h10_an_oversized_pool_is_halved_until_it_fits_and_keeps_the_room_that_it_needs() {
    let (mut pool, mut judge) = (SimulatedPool::new(10, 1_000, 2), judge());
    pool.run(&mut judge, 12, bursts(400));
    let sizes: Vec<usize> = pool.acts().iter().map(|(_, _, to)| *to).collect();
    assert_eq!(sizes[..3], [500, 250, 125]);
    assert!(pool.each >= 1);
    let before = pool.acts().len();
    pool.run(&mut judge, 40, bursts(400));
    assert!(pool.acts().len() <= before + 2, "it settles: {:?}", pool.acts());
}

#[test]
fn h10_a_load_that_changes_all_the_time_is_not_followed_to_and_fro() {
    let (mut pool, mut judge) = (SimulatedPool::new(20, 50, 4), judge());
    for _ in 0..12 {
        pool.run(&mut judge, 1, bursts(1_500));
        pool.run(&mut judge, 1, bursts(30));
    }
    let acts = pool.acts();
    let turns = acts.windows(2).filter(|pair| (pair[0].2 > pair[0].1) != (pair[1].2 > pair[1].1));
    assert_eq!(turns.count(), 0, "{acts:?}");
    assert!(acts.windows(2).all(|pair| pair[1].0 > pair[0].0));
}
