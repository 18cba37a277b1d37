//! The bare pool beside the engine: row B-uniform of `pools`, without an engine around it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use greenroom::{Actor, Context, Pool, Stop};

use crate::{Failure, random::Random};

const WORKERS: usize = 256;
const MAILBOX: usize = 1_000;
const PRODUCERS: u64 = 2;
const KEYS: u64 = 1_000_000;

/// 48 bytes, as in `pools`.
struct Message {
    key: u64,
    _rest: [u64; 5],
}

struct Worker(Arc<Counter>);

/// With a cache line, and its prefetched neighbour, of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Actor for Worker {
    type Message = Message;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, _: Message, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.0.0.store(self.0.0.load(Ordering::Relaxed) + 1, Ordering::Release);
        Ok(())
    }
}

/// So many messages through a pool that is ordered by key.
pub async fn keyed(count: u64) -> Result<u64, Failure> {
    let counters: Vec<Arc<Counter>> = (0..WORKERS).map(|_| Arc::default()).collect();
    let of = counters.clone();
    let pool = Pool::new(move |slot| Worker(of[slot].clone()))
        .quick_factory()
        .workers(WORKERS)
        .mailbox(MAILBOX)
        .ordered_by(|message: &Message| message.key)
        .spawn()
        .await?;
    let mut producers = Vec::new();
    for producer in 0..PRODUCERS {
        let to = pool.address();
        producers.push(tokio::spawn(async move {
            let mut random = Random::new();
            for number in count * producer / PRODUCERS..count * (producer + 1) / PRODUCERS {
                let key = random.next() % KEYS;
                let sent = to.send(Message { key, _rest: [number; 5] }).await;
                sent.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        }));
    }
    for producer in producers {
        producer.await??;
    }
    pool.stop(Stop::within(Duration::from_secs(60))).await;
    Ok(counters.iter().map(|counter| counter.0.load(Ordering::Acquire)).sum())
}
