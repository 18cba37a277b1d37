//! The task that talks to the server. It waits for the server and for commands, never for the
//! engine (D11).
//!
//! | part | what it does |
//! |---|---|
//! | `reading` | reads this consumer's pending entries, abandoned entries, then new ones |
//! | `keeping` | renews the claim on entries in hand, and notices lost ones |
//! | `telling` | acknowledges settled entries, gives back those that were never started |
//! | `grouping` | recreates groups that are gone |

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

/// Waits between attempts to reconnect.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// A connection that lasted this long resets the backoff.
const STEADY: Duration = Duration::from_secs(10);

pub(super) struct Driver {
    pub(super) server: Server,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) input: RedisInput,
    pub(super) form: Form,
}

impl Driver {
    /// Runs until `Command::End`, or until every sender of commands is dropped.
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

    /// Reports the error as the status of the source.
    fn lost(&self, error: &RedisError) {
        let server = &self.server.shown;
        let (state, next) = match correction(error) {
            Some(next) => (InputState::Refused, next),
            None => (InputState::Lost, "it is tried again without end"),
        };
        self.shared.status.set(state, format!("{server}: {error}; {next}"));
    }

    /// `None`: the driver has to end.
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

    /// Serves one connection until the driver has to end.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses a command.
    async fn serve(&mut self, link: &mut Link) -> Result<(), RedisError> {
        self.find_groups(&mut link.tells).await?;
        self.acknowledge(&mut link.tells).await?;
        let mut keep = interval(self.keep_every());
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
                        // The receiver may have timed out.
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

/// The answer to the pending request; waits forever without one.
async fn answer(asked: &mut Option<Asked>) -> (Read, Result<Value, RedisError>) {
    match asked {
        Some(asked) => asked.await,
        None => pending().await,
    }
}

/// Waits until the driver has to end. Commits return at once, and confirm nothing.
async fn ended(commands: &mut mpsc::UnboundedReceiver<Command>) {
    while let Some(Command::Commit(done)) = commands.recv().await {
        // The receiver may have timed out.
        let _ = done.send(());
    }
}
