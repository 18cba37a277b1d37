//! Withdrawing alongside senders and workers on several threads.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{Backoff, PoolBuilder, policy::RoundRobin, prelude::*};

use crate::sending::room::assert_room;

use super::clerk::PATIENCE;

/// A key and a number.
type Item = (u64, u64);

/// A key that is compared by user code.
#[derive(PartialEq, Eq, Hash)]
struct OwnKey(u64);

#[derive(Default)]
struct Seen {
    begun: HashSet<Item>,
    last: HashMap<u64, u64>,
    withdrawn: HashSet<Item>,
    violations: Vec<String>,
}

#[derive(Clone)]
struct Clerk {
    seen: Arc<Mutex<Seen>>,
    in_order: bool,
    fails: bool,
}

impl Actor for Clerk {
    type Message = Item;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, item: Item, _cx: &mut Context<Self>) -> Result<(), ()> {
        let (key, number) = item;
        let is_first = {
            let mut seen = self.seen.lock().unwrap();
            if seen.withdrawn.contains(&item) {
                seen.violations.push(format!("{item:?} was withdrawn"));
            }
            let last = seen.last.insert(key, number);
            if self.in_order && last.is_some_and(|last| last > number) {
                seen.violations.push(format!("{item:?} after {last:?}"));
            }
            seen.begun.insert(item)
        };
        match number % 16 {
            1 => tokio::task::yield_now().await,
            2 => tokio::time::sleep(Duration::from_micros(200)).await,
            3 => std::thread::sleep(Duration::from_micros(20)),
            4 if self.fails && is_first => return Err(()),
            _ => {}
        }
        Ok(())
    }
}

const SENDERS: u64 = 4;
const CAPACITY: usize = 64;

fn messages() -> u64 {
    let said = std::env::var("GREENROOM_MESSAGES").ok().and_then(|count| count.parse().ok());
    said.unwrap_or(3_000)
}

async fn send_all(address: greenroom::Address<Item, (), ()>, sender: u64) {
    for number in 0..messages() {
        // Each sender has its own keys.
        let key = sender + SENDERS * (number % 3);
        address.send((key, number)).await.unwrap();
    }
}

/// Withdraws a regular part of the messages until all are sent.
async fn withdraw_on(pool: &Pool<Clerk>, seen: &Mutex<Seen>, over: impl Fn() -> bool) -> usize {
    let (mut withdrawn, mut round) = (0, 0);
    while !over() {
        round += 1;
        withdrawn += pool.admin().withdraw(|item| {
            let chosen = item.1 % 5 == round % 5;
            if chosen && !seen.lock().unwrap().withdrawn.insert(*item) {
                panic!("{item:?} was withdrawn before");
            }
            chosen
        });
        if pool.stats().configured != 1 && round % 8 == 0 {
            let _ = pool.admin().resize(2 + round as usize % 4);
        }
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    withdrawn
}

async fn run<K: std::hash::Hash + Eq + Send + Sync + 'static>(
    in_order: bool,
    fails: bool,
    set_up: impl FnOnce(PoolBuilder<Clerk>) -> PoolBuilder<Clerk, K>,
) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let clerk = Clerk { seen: seen.clone(), in_order, fails };
    let builder = Pool::new(move |_slot| clerk.clone()).workers(3).capacity(CAPACITY);
    let pool = set_up(builder.mailbox(CAPACITY)).spawn().await.unwrap();
    let senders: Vec<_> =
        (0..SENDERS).map(|sender| tokio::spawn(send_all(pool.address(), sender))).collect();
    let over = || senders.iter().all(tokio::task::JoinHandle::is_finished);
    let withdrawn = withdraw_on(&pool, &seen, over).await;
    for sender in senders {
        sender.await.unwrap();
    }
    while pool.stats().accepted != pool.stats().settled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_room(&pool, CAPACITY);
    let stats = pool.stop(PATIENCE).await.stats;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.violations, Vec::<String>::new());
    assert!(stats.ledger_holds(), "{stats:?}");
    assert_eq!(stats.accepted, SENDERS * messages());
    assert_eq!((stats.withdrawn as usize, seen.withdrawn.len()), (withdrawn, withdrawn));
    assert_eq!((stats.handled + stats.withdrawn, stats.dead_lettered), (stats.accepted, 0));
    assert!(withdrawn > 0 && stats.handled > 0, "{stats:?}");
}

macro_rules! on_threads {
    ($($name:ident: $in_order:literal, $fails:literal, $set_up:expr;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                let ran = run($in_order, $fails, $set_up);
                tokio::time::timeout(Duration::from_secs(120), ran).await.expect("it comes to an end");
            }
        )+
    };
}

const SOON: Backoff = Backoff::new(Duration::from_micros(100), Duration::from_millis(1));

on_threads! {
    beside_a_pool_of_one: true, false, |pool| pool.workers(1);
    beside_a_pool_without_keys: false, true, |pool| pool.retry(3, SOON);
    beside_plain_keys: true, true, |pool| pool.retry(3, SOON).ordered_by(|item: &Item| item.0);
    beside_keys_that_users_compare: true, true, |pool| {
        pool.retry(3, SOON).ordered_by(|item: &Item| OwnKey(item.0))
    };
    beside_keys_with_a_bound: true, false, |pool| {
        pool.ordered_by(|item: &Item| OwnKey(item.0)).max_per_key(4)
    };
    beside_sticky_keys_that_move: true, true, |pool| {
        pool.retry(3, SOON).sticky_by(|item: &Item| item.0)
    };
    beside_a_policy: false, true, |pool| pool.retry(3, SOON).dispatch(RoundRobin::new());
}
