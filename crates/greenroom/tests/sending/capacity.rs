//! A pool whose bound changes while it works (H10).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    NotAccepted, Overflow, PoolEvent, PoolEvents, Stop, pool::AdminError, prelude::*, topic::Event,
};
use tokio::{sync::Semaphore, task::JoinHandle};

const SOON: Duration = Duration::from_secs(60);

/// Handles a message for each permit that it gets, and notes it.
struct Gated {
    gate: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl Actor for Gated {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: u32, _: &mut Context<Self>) -> Result<(), ()> {
        self.gate.acquire().await.expect("it is not closed").forget();
        self.seen.lock().expect("nobody panics").push(message);
        Ok(())
    }
}

/// Yields once, or waits until it may continue.
struct Waiting(Arc<Semaphore>);

impl Actor for Waiting {
    type Message = bool;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, gives_way: bool, _: &mut Context<Self>) -> Result<(), ()> {
        match gives_way {
            true => tokio::task::yield_now().await,
            false => self.0.acquire().await.expect("it is not closed").forget(),
        }
        Ok(())
    }
}

/// Senders are served in blocks behind handlers that wait, and a block is a sixteenth of the
/// capacity. Only the watchdog wakes them for less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a05_a_sender_that_waits_for_less_than_a_block_is_served_soon() {
    let gate = Arc::new(Semaphore::new(0));
    let of_workers = gate.clone();
    let pool = Pool::new(move |_| Waiting(of_workers.clone())).workers(2).capacity(320);
    let pool = pool.spawn().await.unwrap();
    for _ in 0..200 {
        pool.call(true).await.unwrap();
    }
    for _ in 0..322 {
        pool.send(false).await.unwrap();
    }
    assert!(pool.try_send(false).is_err(), "two are in hand, and all places are taken");
    for served in 1..=3 {
        let address = pool.address();
        let mut sender = tokio::spawn(async move { address.send(false).await });
        turns().await;
        assert!(!sender.is_finished(), "there is no place");
        gate.add_permits(1);
        let sent = tokio::time::timeout(SOON, &mut sender).await;
        assert!(sent.is_ok_and(|sent| sent.unwrap().is_ok()), "place {served} is a sender's");
    }
    gate.add_permits(1_000);
    assert!(pool.stop(Stop::within(SOON)).await.left_over.is_empty());
}

struct Setting {
    pool: Pool<Gated>,
    gate: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<u32>>>,
}

/// One worker, which holds the message 0 in hand, and `capacity` messages queued.
async fn full(capacity: usize) -> Setting {
    let (gate, seen) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (gate_of, seen_of) = (gate.clone(), seen.clone());
    let worker = move |_| Gated { gate: gate_of.clone(), seen: seen_of.clone() };
    let pool = Pool::new(worker).workers(1).capacity(capacity).spawn().await.unwrap();
    pool.send(0).await.unwrap();
    turns().await;
    for message in 1..=capacity as u32 {
        pool.try_send(message).unwrap();
    }
    assert!(pool.try_send(99).is_err());
    Setting { pool, gate, seen }
}

/// Lets all tasks do what they can.
async fn turns() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn sender(setting: &Setting, message: u32) -> JoinHandle<()> {
    let address = setting.pool.address();
    tokio::spawn(async move { address.send(message).await.unwrap() })
}

async fn waiting_senders(setting: &Setting, messages: std::ops::Range<u32>) -> Vec<JoinHandle<()>> {
    let mut senders = Vec::new();
    for message in messages {
        senders.push(sender(setting, message));
        turns().await;
    }
    senders
}

async fn all_are_handled(setting: Setting, in_all: u32) {
    setting.gate.add_permits(in_all as usize);
    turns().await;
    let report = setting.pool.stop(Stop::within(SOON)).await;
    assert!(report.left_over.is_empty());
    assert!(setting.pool.stats().ledger_holds());
    let seen = setting.seen.lock().unwrap();
    assert_eq!(*seen, (0..in_all).collect::<Vec<_>>(), "each once, in the order of acceptance");
}

#[tokio::test(start_paused = true)]
async fn h10_senders_that_wait_get_the_room_that_is_added_first_come_first_served() {
    let setting = full(2).await;
    let senders = waiting_senders(&setting, 3..8).await;
    setting.pool.admin().set_capacity(5).unwrap();
    turns().await;
    let done: Vec<bool> = senders.iter().map(JoinHandle::is_finished).collect();
    assert_eq!(done, [true, true, true, false, false]);
    assert_eq!((setting.pool.stats().queued, setting.pool.stats().capacity), (5, 5));
    setting.pool.admin().set_capacity(100).unwrap();
    turns().await;
    assert!(senders.iter().all(JoinHandle::is_finished));
    all_are_handled(setting, 8).await;
}

#[tokio::test(start_paused = true)]
async fn h10_below_what_is_queued_nothing_is_accepted_until_it_has_drained() {
    let setting = full(6).await;
    setting.pool.admin().set_capacity(2).unwrap();
    let senders = waiting_senders(&setting, 7..9).await;
    assert_eq!((setting.pool.stats().queued, setting.pool.stats().capacity), (6, 2));
    for left in [5, 4, 3, 2] {
        setting.gate.add_permits(1);
        turns().await;
        assert_eq!(setting.pool.stats().queued, left, "nobody was let in");
        assert_eq!(setting.pool.try_send(99).unwrap_err().without_message(), NotAccepted::Full);
    }
    setting.gate.add_permits(1);
    turns().await;
    assert_eq!(setting.pool.stats().queued, 2, "one has gone, and one has come");
    assert!(senders[0].is_finished() && !senders[1].is_finished());
    all_are_handled(setting, 9).await;
}

#[tokio::test(start_paused = true)]
async fn h10_a_bound_that_goes_up_and_down_while_senders_wait_loses_nobody() {
    let setting = full(4).await;
    let senders = waiting_senders(&setting, 5..40).await;
    for capacity in [1, 9, 2, 3, 1, 12, 1, 5] {
        setting.pool.admin().set_capacity(capacity).unwrap();
        setting.gate.add_permits(3);
        turns().await;
    }
    setting.gate.add_permits(40);
    turns().await;
    assert!(senders.iter().all(JoinHandle::is_finished));
    all_are_handled(setting, 40).await;
}

#[tokio::test(start_paused = true)]
async fn h10_a_capacity_that_is_set_in_all_follows_the_size_no_more() {
    let notices = PoolEvents::new(100);
    let mut told = notices.subscribe();
    let pool =
        Pool::new(|_| Idle).workers(2).mailbox(7).pool_events(notices).spawn().await.unwrap();
    let admin = pool.admin();
    admin.resize(3).unwrap().done(SOON).await;
    assert_eq!(pool.stats().capacity, 21);
    admin.set_capacity(50).unwrap();
    admin.resize(1).unwrap().done(SOON).await;
    assert_eq!(pool.stats().capacity, 50);
    let mut changes = Vec::new();
    while let Some(Event::Item(notice)) = told.try_recv() {
        if let PoolEvent::CapacityChanged { from, to } = notice.what {
            changes.push((from, to));
        }
    }
    assert_eq!(changes, [(21, 50)]);
}

#[tokio::test(start_paused = true)]
async fn h10_a_capacity_out_of_range_is_refused_and_changes_nothing() {
    let pool = Pool::new(|_| Idle).workers(2).capacity(10).spawn().await.unwrap();
    let admin = pool.admin();
    let refused = |asked| AdminError::CapacityOutOfRange { asked, most: 100_000_000 };
    assert_eq!(admin.set_capacity(0), Err(refused(0)));
    assert_eq!(admin.set_capacity(100_000_001), Err(refused(100_000_001)));
    assert_eq!(pool.stats().capacity, 10);
    pool.stop(Stop::within(SOON)).await;
    assert_eq!(admin.set_capacity(5), Err(AdminError::NotRunning));
}

#[tokio::test(start_paused = true)]
async fn h10_changes_from_not_full_to_full_are_counted_however_many_find_no_room() {
    let pool = Pool::new(|_| Idle).workers(1).capacity(4).overflow(Overflow::Reject);
    let pool = pool.spawn().await.unwrap();
    for round in 1..=5 {
        let sent = (0..20).filter(|_| pool.try_send(0).is_ok()).count();
        assert_eq!((sent, pool.stats().inbox_full), (4, round));
        turns().await;
    }
}

/// Does nothing.
struct Idle;

impl Actor for Idle {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }
}

/// Notes the messages that it has handled for each key.
#[derive(Clone, Default)]
struct Noter(Arc<Mutex<HashMap<u8, Vec<u32>>>>);

impl Actor for Noter {
    type Message = (u8, u32);
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (key, number): (u8, u32), _: &mut Context<Self>) -> Result<(), ()> {
        tokio::task::yield_now().await;
        self.0.lock().expect("nobody panics").entry(key).or_default().push(number);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h10_the_order_of_each_key_holds_and_nothing_is_lost_while_the_bound_changes() {
    const EACH: u32 = 500;
    let seen = Noter::default();
    let noter = seen.clone();
    let pool = Pool::new(move |_| noter.clone()).workers(4).capacity(64);
    let pool = pool.ordered_by(|message: &(u8, u32)| message.0).spawn().await.unwrap();
    let senders: Vec<_> = (0..8_u8)
        .map(|key| {
            let address = pool.address();
            tokio::spawn(async move {
                for number in 0..EACH {
                    address.send((key, number)).await.unwrap();
                }
            })
        })
        .collect();
    let admin = pool.admin();
    let mut capacity = [1, 64, 3, 700, 2, 20].into_iter().cycle();
    while !senders.iter().all(JoinHandle::is_finished) {
        admin.set_capacity(capacity.next().unwrap()).unwrap();
        tokio::task::yield_now().await;
    }
    let report = pool.stop(Stop::within(SOON)).await;
    assert!(report.left_over.is_empty() && pool.stats().ledger_holds());
    let seen = seen.0.lock().unwrap();
    assert!((0..8).all(|key| seen[&key] == (0..EACH).collect::<Vec<_>>()));
}
