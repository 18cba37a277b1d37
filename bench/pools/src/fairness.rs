//! K04: what a hot key takes while others wait. Two senders keep a queue full of one key; a third
//! has a message for one of 63 other keys now and then. The baseline is one task behind one
//! channel, where the others wait behind all that was there before.
//!
//! A single worker, as a hot key and another one are handled side by side where there are
//! more; and a single thread, so that nothing runs between a message's acceptance and
//! what is written down of it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom::{Address, prelude::*};
use tokio::{sync::mpsc, task::yield_now};

use crate::{
    Failure,
    channels::MAILBOX,
    message::{Counter, Counters},
    rounds::{Figures, Side},
    stage::{Stage, Threads},
};

const HOT: u64 = 0;
const HOT_SENDERS: u64 = 2;
const OTHER_KEYS: u64 = 63;
/// Hot messages for each message of another key, over the whole run.
const HOT_PER_OTHER: u64 = 200;
/// Turns of all tasks between two messages of other keys.
const PAUSE: usize = 3;

#[derive(Clone, Copy)]
pub struct Fairness {
    pub messages: u64,
    /// Handlers give their thread away once in each message.
    pub suspends: bool,
}

/// What is written down; all of it on one thread.
#[derive(Default)]
struct Book {
    /// Messages of other keys that were accepted and not started.
    waiting: AtomicU64,
    /// Of those, how many were started.
    others: AtomicU64,
    /// Hot messages that were started while others waited: in all, since the last
    /// other, and the most of those.
    hot: AtomicU64,
    run: AtomicU64,
    longest: AtomicU64,
}

impl Book {
    fn accepted(&self, key: u64) {
        if key != HOT {
            self.waiting.fetch_add(1, Relaxed);
        }
    }

    fn started(&self, key: u64) {
        if key != HOT {
            self.waiting.fetch_sub(1, Relaxed);
            self.others.fetch_add(1, Relaxed);
            self.run.store(0, Relaxed);
        } else if self.waiting.load(Relaxed) > 0 {
            self.hot.fetch_add(1, Relaxed);
            self.longest.fetch_max(self.run.fetch_add(1, Relaxed) + 1, Relaxed);
        }
    }

    fn figures(&self) -> Figures {
        let mean = self.hot.load(Relaxed) as f64 / self.others.load(Relaxed) as f64;
        Figures { value: self.longest.load(Relaxed) as f64, also: vec![("mean", mean)] }
    }
}

struct Handler {
    book: Arc<Book>,
    counter: Arc<Counter>,
    suspends: bool,
}

impl Handler {
    fn of(
        book: &Arc<Book>,
        counters: &Counters,
        suspends: bool,
    ) -> impl Fn() -> Self + Send + Sync + 'static {
        let (book, counters) = (book.clone(), counters.clone());
        move || Self { book: book.clone(), counter: counters.of(0), suspends }
    }

    async fn take(&self, key: u64) {
        self.book.started(key);
        if self.suspends {
            yield_now().await;
        }
        self.counter.add();
    }
}

impl Actor for Handler {
    type Message = u64;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, key: u64, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.take(key).await;
        Ok(())
    }
}

/// Where senders send to.
#[derive(Clone)]
enum To {
    Channel(mpsc::Sender<u64>),
    Pool(Address<u64, (), Infallible>),
}

impl To {
    /// Waits for room, and writes down that it has accepted the message, in one go with that.
    async fn send(&self, key: u64, book: &Book) -> Result<(), Failure> {
        match self {
            Self::Channel(to) => {
                let permit = to.reserve().await?;
                book.accepted(key);
                permit.send(key);
            }
            Self::Pool(to) => {
                let permit = to.reserve().await?;
                book.accepted(key);
                permit.send(key)?;
            }
        }
        Ok(())
    }
}

fn task(stage: &Stage, handler: Handler) -> Result<To, Failure> {
    let (sender, mut inbox) = mpsc::channel(MAILBOX);
    stage.spawn(async move {
        while let Some(key) = inbox.recv().await {
            handler.take(key).await;
        }
    })?;
    Ok(To::Channel(sender))
}

impl Fairness {
    /// The most hot messages in a row that were started while another key waited.
    pub fn run(self, side: Side) -> Result<Figures, Failure> {
        let (stage, counters) = (Stage::new(Threads::Current)?, Counters::new(1));
        let book = Arc::new(Book::default());
        let handler = Handler::of(&book, &counters, self.suspends);
        match side {
            Side::Baseline => self.send_all(&stage, &counters, &book, &task(&stage, handler())?)?,
            Side::Greenroom => {
                let pool = Pool::new(move |_slot| handler()).workers(1).mailbox(MAILBOX);
                // What is asked is who is next, and not how many may wait.
                let pool = pool.ordered_by(|key: &u64| *key).max_per_key(MAILBOX);
                let pool = stage.block_on(pool.spawn())??;
                self.send_all(&stage, &counters, &book, &To::Pool(pool.address()))?;
                stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
            }
        }
        Ok(book.figures())
    }

    fn send_all(
        self,
        stage: &Stage,
        counters: &Counters,
        book: &Arc<Book>,
        to: &To,
    ) -> Result<(), Failure> {
        let (hot, others) = (self.messages / HOT_SENDERS, self.messages / HOT_PER_OTHER);
        // One kind of task, as the stage takes them.
        let sender = |index| {
            let (to, book) = (to.clone(), book.clone());
            async move {
                if index < HOT_SENDERS {
                    for _ in 0..hot {
                        to.send(HOT, &book).await?;
                    }
                    return Ok(());
                }
                for other in 0..others {
                    to.send(HOT + 1 + other % OTHER_KEYS, &book).await?;
                    for _ in 0..PAUSE {
                        yield_now().await;
                    }
                }
                Ok(())
            }
        };
        let senders = (0..=HOT_SENDERS).map(sender).collect();
        stage.time(senders, counters, hot * HOT_SENDERS + others).map(drop)
    }
}
