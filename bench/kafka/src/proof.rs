//! The long proof: two processes of one group, which are killed and started again at random under
//! load, lose nothing and keep the order of each key.

mod ledger;
mod member;
mod options;
mod process;
mod publishing;

use std::{
    process::ExitCode,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use measure::{Watch, machine};

pub use self::member::run as member;
use self::{
    ledger::Ledger,
    options::Options,
    process::{Line, Process},
    publishing::Published,
};
use crate::{
    Failure,
    broker::{Broker, unique},
    random::Random,
};

/// Processes at once.
const MEMBERS: usize = 2;
/// Between two kills, and between a kill and the new start: up to so long.
const KILLS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(20));
const AWAY: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(3));
/// For so long nothing may happen, in the end: longer than a session, and than the slowest event.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::of(args)?;
    let broker = Broker::open()?;
    let topic = unique("proof");
    broker.create_topic(&topic)?;
    println!("greenroom {}, {}", env!("CARGO_PKG_VERSION"), machine());
    println!("{options}");
    let watch = Watch::start();
    let published = Arc::new(Published::draw(options.events, options.keys, options.seed));
    let publishes = publishing::over(&broker, &topic, published.clone(), options.time());
    let mut proof = Proof {
        broker: broker.address.clone(),
        topic,
        options,
        random: Random::new(options.seed),
        started: 0,
        kills: 0,
        lines: mpsc::channel(),
        ledger: Ledger::new(published),
    };
    let mut members = (0..MEMBERS).map(|at| proof.start(at)).collect::<Result<Vec<_>, _>>()?;
    proof.kill_now_and_then(&mut members)?;
    publishes.join().map_err(|_| "the publisher has panicked")??;
    proof.wait_for_all()?;
    for member in members {
        member.ended()?;
    }
    proof.take(Duration::ZERO);
    println!(
        "{} kills; others, the broker among them, used {:.2} cores",
        proof.kills,
        watch.cores()
    );
    Ok(proof.ledger.judge())
}

struct Proof {
    broker: String,
    topic: String,
    options: Options,
    random: Random,
    /// Processes that were started.
    started: u32,
    kills: u32,
    lines: (mpsc::Sender<Line>, mpsc::Receiver<Line>),
    ledger: Ledger,
}

impl Proof {
    fn start(&mut self, at: usize) -> Result<Process, Failure> {
        self.started += 1;
        let name = self.options.is_static.then(|| format!("proof-{at}"));
        let task = [&self.broker, &self.topic, name.as_deref().unwrap_or("-")];
        Process::start(self.started, task, self.lines.0.clone())
    }

    fn kill_now_and_then(&mut self, members: &mut [Process]) -> Result<(), Failure> {
        let until = Instant::now() + self.options.time();
        let mut told = Instant::now();
        loop {
            let next = Instant::now() + self.between(KILLS);
            self.take_until(next.min(until));
            if next >= until {
                return Ok(());
            }
            let at = (self.random.next() % MEMBERS as u64) as usize;
            members[at].kill()?;
            self.kills += 1;
            let back = Instant::now() + self.between(AWAY);
            self.take_until(back);
            members[at] = self.start(at)?;
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                eprintln!("{} kills, {} events are handled", self.kills, self.ledger.count_done());
            }
        }
    }

    fn between(&mut self, (least, most): (Duration, Duration)) -> Duration {
        least + (most - least).mul_f64(self.random.even())
    }

    fn take_until(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.take(left.min(Duration::from_millis(100)));
        }
    }

    /// Takes down what was said; waits so long for the first of it. False where nothing was.
    fn take(&mut self, patience: Duration) -> bool {
        let Ok(first) = self.lines.1.recv_timeout(patience) else { return false };
        self.ledger.take(first);
        self.lines.1.try_iter().for_each(|line| self.ledger.take(line));
        true
    }

    fn wait_for_all(&mut self) -> Result<(), Failure> {
        while !self.ledger.is_whole() {
            if !self.take(PATIENCE) {
                let (done, all) = (self.ledger.count_done(), self.options.events);
                return Err(format!("{done} of {all} events are handled, and no more come").into());
            }
        }
        Ok(())
    }
}
