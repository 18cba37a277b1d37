//! A worker that does what the messages say, and its pools.

use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Backoff, Context, EventPool, PoolEvents, Restarts,
    event_pool::{EventPoolBuilder, EventPoolConfig, Keyed},
    pool_events::{Kind, PoolEventReceiver},
    topic::Event,
};
use parking_lot::Mutex;

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    Reply(u64),
    Fail,
    Panic,
    Sleep(Duration),
}

pub(crate) type Order = Keyed<u64, Do>;

/// The fully handled messages, in order.
pub(crate) type Done = Arc<Mutex<Vec<Order>>>;

pub(crate) struct Clerk(Done);

impl Actor for Clerk {
    type Message = Order;
    type Reply = u64;
    type Error = &'static str;

    async fn handle(&mut self, event: Order, _: &mut Context<Self>) -> Result<u64, &'static str> {
        let reply = match event.message {
            Do::Reply(number) => Ok(number),
            Do::Fail => Err("no such order"),
            Do::Panic => panic!("on purpose"),
            Do::Sleep(time) => {
                tokio::time::sleep(time).await;
                Ok(0)
            }
        };
        self.0.lock().push(event);
        reply
    }
}

impl Clerk {
    pub(crate) fn new(done: Done) -> Self {
        Self(done)
    }
}

/// A pool that restarts a worker a second after it has died, its log of handled messages, and the
/// receiver of its events.
pub(crate) fn clerks(
    config: EventPoolConfig,
) -> (EventPoolBuilder<Clerk>, Done, PoolEventReceiver) {
    let (done, notices) = (Done::default(), PoolEvents::new(1_000));
    let (of_clerks, receiver) = (done.clone(), notices.subscribe());
    let backoff = Backoff::new(SECOND, SECOND);
    let restarts = Restarts { backoff, ..Restarts::default() };
    let builder = EventPool::new(config, move |_| Clerk(of_clerks.clone()))
        .name("clerks")
        .with(|pool| pool.quick_factory().restarts(restarts).pool_events(notices));
    (builder, done, receiver)
}

pub(crate) fn sizes(pool_size: usize, inbox_size: usize) -> EventPoolConfig {
    EventPoolConfig {
        pool_size: Some(pool_size),
        inbox_size: Some(inbox_size),
        ..EventPoolConfig::default()
    }
}

/// The kinds of the received events, without routine ones.
pub(crate) fn told(receiver: &mut PoolEventReceiver) -> Vec<Kind> {
    let events = std::iter::from_fn(|| receiver.try_recv());
    let kinds = events.filter_map(Event::into_item).map(|notice| notice.what.kind());
    kinds.filter(|kind| !matches!(kind, Kind::Started | Kind::WorkerStarted)).collect()
}

/// The numbers that were replied, in order.
pub(crate) fn numbers(done: &Done) -> Vec<u64> {
    let number = |event: &Order| match event.message {
        Do::Reply(number) => Some(number),
        _ => None,
    };
    done.lock().iter().filter_map(number).collect()
}
