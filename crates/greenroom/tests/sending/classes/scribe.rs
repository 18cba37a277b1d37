//! Workers that do what the messages say, and record what they see.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, Class, Context, Delivery, Envelope, Pool, PoolBuilder, Stop,
};
use tokio::time::Instant;

/// The request in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Return,
    /// Suspends for this many milliseconds.
    Sleep(u64),
    FailOnce,
    /// Fails twice, each time after a millisecond.
    FailTwice,
}

/// A key, a number, and a request.
pub(crate) type Note = (u8, u32, Deed);

/// Numbers in the order of their attempts, and the keys that are in hand.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) order: Vec<u32>,
    pub(crate) carried: Vec<Carried>,
    /// When each was queued, and how long ago that was.
    pub(crate) queued: Vec<(Instant, Duration)>,
    in_hand: HashMap<u8, u32>,
    beside: Vec<(u32, u32)>,
}

/// The metadata of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) class: Class,
    pub(crate) sender: Option<String>,
    pub(crate) left: Option<Duration>,
    pub(crate) trace: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) is_call: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Scribe(pub(crate) Arc<Mutex<Seen>>);

impl Scribe {
    pub(crate) fn order(&self) -> Vec<u32> {
        self.0.lock().unwrap().order.clone()
    }

    pub(crate) fn beside(&self) -> Vec<(u32, u32)> {
        self.0.lock().unwrap().beside.clone()
    }

    fn begin(&self, delivery: &Delivery<Note, u32, ()>) {
        let (key, number, _) = *delivery.message().unwrap();
        let mut seen = self.0.lock().unwrap();
        seen.order.push(number);
        if let Some(other) = seen.in_hand.insert(key, number) {
            seen.beside.push((other, number));
        }
        seen.queued.push((delivery.queued_at(), delivery.queued_for()));
        seen.carried.push(Carried {
            class: delivery.class(),
            sender: delivery.sender().map(|sender| sender.name().to_owned()),
            left: delivery.time_left(),
            trace: delivery.trace().map(str::to_owned),
            attempt: delivery.attempt(),
            is_call: delivery.is_call(),
        });
    }
}

impl Actor for Scribe {
    type Message = Note;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self>) -> Result<u32, ()> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Note, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        self.begin(delivery);
        let (key, number, deed) = *delivery.message().unwrap();
        match deed {
            Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::FailTwice => tokio::time::sleep(Duration::from_millis(1)).await,
            Deed::Return | Deed::FailOnce => {}
        }
        self.0.lock().unwrap().in_hand.remove(&key);
        match (deed, delivery.attempt()) {
            (Deed::FailOnce, 1) | (Deed::FailTwice, 1 | 2) => Err(()),
            _ => Ok(Answer::Reply(number)),
        }
    }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn scribes(workers: usize) -> (PoolBuilder<Scribe>, Scribe) {
    let scribe = Scribe::default();
    let each = scribe.clone();
    let pool = Pool::new(move |_| each.clone()).workers(workers).capacity(1_000);
    (pool.retry(3, Backoff::new(Duration::from_millis(100), SECOND)), scribe)
}

/// A pool that keeps the order of keys, or one that does not.
pub(crate) async fn open(pool: PoolBuilder<Scribe>, keyed: bool) -> Pool<Scribe> {
    match keyed {
        true => pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap(),
        false => pool.spawn().await.unwrap(),
    }
}

pub(crate) fn normal(pool: &Pool<Scribe>, key: u8, number: u32, deed: Deed) {
    pool.try_send((key, number, deed)).unwrap();
}

pub(crate) fn urgent(pool: &Pool<Scribe>, key: u8, number: u32) {
    pool.try_send_with((key, number, Deed::Return), Envelope::urgent()).unwrap();
}

pub(crate) async fn finish(pool: &Pool<Scribe>) {
    let report = pool.stop(Stop::within(Duration::from_secs(3_600))).await;
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
    assert_eq!(report.stats.accepted, report.stats.handled);
}
