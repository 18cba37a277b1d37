//! The task that talks to the server. It waits for nothing but the server, and for what it is told:
//! never for the engine (D11).
//!
//! | part | what it does |
//! |---|---|
//! | `reading` | reads what this consumer had, what others have left, and what is new |
//! | `keeping` | keeps what is in hand from others, and notices what is not its own any more |
//! | `telling` | acknowledges what is settled, and gives back what was never started |
//! | `grouping` | finds the groups, or makes them |

mod grouping;
mod keeping;
mod read;
mod reading;
mod telling;

use std::{future::pending, sync::Arc, time::Duration};

use greenroom::Backoff;
use greenroom_bus::source::InputState;
use redis::{RedisError, Value};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use self::read::{Asked, Read};
use super::{
    committer::Command,
    link::Link,
    shared::{FailsOnPanic, Shared},
};
use crate::{
    connection::{Server, correction},
    form::Form,
    options::RedisInput,
};

/// Between attempts to connect again.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// A connection that held for so long was a good one: the next attempt is made soon.
const STEADY: Duration = Duration::from_secs(10);

/// What is in hand is kept at least this often, and the lag is asked for.
const KEEP_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Driver {
    pub(super) server: Server,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) input: RedisInput,
    pub(super) form: Form,
}

impl Driver {
    /// Until it is told to end, or no handle is left that could tell it.
    pub(super) async fn run(mut self, mut link: Link) {
        let _fails = FailsOnPanic(self.shared.clone());
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let Err(error) = self.serve(&mut link).await else { return };
            failures = if began.elapsed() > STEADY { 1 } else { failures + 1 };
            self.lost(&error);
            match self.connect_again(failures).await {
                Some(another) => link = another,
                None => return,
            }
        }
    }

    /// Says why it is not connected.
    fn lost(&self, error: &RedisError) {
        let server = &self.server.shown;
        let (state, next) = match correction(error) {
            Some(next) => (InputState::Refused, next),
            None => (InputState::Lost, "it is tried again without end"),
        };
        self.shared.status.set(state, format!("{server}: {error}; {next}"));
    }

    /// `None`: it is to end.
    async fn connect_again(&mut self, mut failures: u32) -> Option<Link> {
        let server = self.server.clone();
        loop {
            let attempt = async {
                sleep(AGAIN.wait(failures, rand::random())).await;
                Link::open(&server).await
            };
            tokio::select! {
                opened = attempt => match opened {
                    Ok(link) => return Some(link),
                    Err(error) => self.lost(&error),
                },
                () = ended(&mut self.commands) => return None,
            }
            failures += 1;
        }
    }

    /// Until it is told to end.
    ///
    /// # Errors
    /// The connection is lost, or the server does not do what it is asked.
    async fn serve(&mut self, link: &mut Link) -> Result<(), RedisError> {
        self.find_groups(&mut link.tells).await?;
        self.acknowledge(&mut link.tells).await?;
        let every = (self.input.claim_after / 4).min(KEEP_EVERY);
        let mut keep = interval(every);
        keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut asked, shared): (Option<Asked>, _) = (None, self.shared.clone());
        loop {
            if asked.is_none() && !shared.is_closing() {
                asked = self.next_read().map(|read| self.ask(read, link.reads.clone()));
            }
            tokio::select! {
                command = self.commands.recv() => {
                    if shared.is_closing() && let Some(asked) = asked.take() {
                        let (read, answer) = asked.await;
                        self.receive(read, answer?)?;
                    }
                    self.acknowledge(&mut link.tells).await?;
                    self.give_back(&mut link.tells).await?;
                    match command {
                        // Whoever does not wait any more needs not know.
                        Some(Command::Commit(done)) => _ = done.send(()),
                        Some(Command::End) | None => return Ok(()),
                    }
                }
                _ = keep.tick() => self.keep(&mut link.tells).await?,
                () = shared.to_driver.notified() => self.acknowledge(&mut link.tells).await?,
                (read, answer) = answer(&mut asked) => {
                    asked = None;
                    self.receive(read, answer?)?;
                }
            }
        }
    }
}

/// The answer to what was asked, if anything was.
async fn answer(asked: &mut Option<Asked>) -> (Read, Result<Value, RedisError>) {
    match asked {
        Some(asked) => asked.await,
        None => pending().await,
    }
}

/// Waits until it is to end. What it is to commit meanwhile stays as it is.
async fn ended(commands: &mut mpsc::UnboundedReceiver<Command>) {
    while let Some(Command::Commit(done)) = commands.recv().await {
        // Whoever does not wait any more needs not know.
        let _ = done.send(());
    }
}
