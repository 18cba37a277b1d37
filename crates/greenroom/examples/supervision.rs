//! What happens if a worker dies again and again?
//!
//! ```text
//!                 root              OneForOne
//!          ┌────────┴───────┐
//!        front         connections      RestForOne: a new session needs a new cache
//!                      ┌────┴────┐
//!                   session    cache    pools; each restarts its own workers first
//! ```
//!
//! `cargo run -p greenroom --example supervision`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    CallError, DeadLetterReason, Restarts, SpawnError, Supervisor, prelude::*,
    supervisor::ChildSpec, supervisor::Strategy,
};

const SOON: Duration = Duration::from_secs(1);

/// A word that kills its reader.
const POISON: &str = "xyzzy";

/// Counts its starts.
struct Reader(&'static str, Arc<AtomicU32>);

impl Actor for Reader {
    type Message = &'static str;
    type Reply = usize;
    type Error = String;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), String> {
        println!("{} starts", self.0);
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn handle(
        &mut self,
        word: &'static str,
        _cx: &mut Context<Self>,
    ) -> Result<usize, String> {
        assert_ne!(word, POISON);
        Ok(word.len())
    }
}

/// A pool, its spec for the supervisor, and the number of starts of its worker.
type Readers = (Pool<Reader>, ChildSpec, Arc<AtomicU32>);

/// A pool of one worker, which the pool itself restarts once.
fn reader(name: &'static str) -> Result<Readers, SpawnError> {
    let starts = Arc::new(AtomicU32::new(0));
    let counted = starts.clone();
    let once = Restarts { max: 1, ..Restarts::default() };
    let pool = Pool::new(move |_slot| Reader(name, counted.clone())).name(name);
    let pool = pool.workers(1).restarts(once).keep_copies();
    let (pool, child) = pool.supervised()?;
    Ok((pool, child, starts))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    std::panic::set_hook(Box::new(|_| println!("a worker panics"))); // instead of a backtrace
    let (_front, front_child, fronts) = reader("front")?;
    let (session, session_child, sessions) = reader("session")?;
    let (_cache, cache_child, caches) = reader("cache")?;
    let group = Supervisor::new(Strategy::RestForOne).name("connections");
    let root = Supervisor::new(Strategy::OneForOne)
        .child(front_child)
        .child(group.child(session_child).child(cache_child))
        .spawn()
        .await?;
    let starts = || [&fronts, &sessions, &caches].map(|starts| starts.load(Ordering::Relaxed));
    assert_eq!(starts(), [1, 1, 1]);

    // The pool restarts its worker. The caller gets the panic at once, and the next call is
    // answered.
    assert!(matches!(session.call(POISON).await, Err(CallError::Panicked(_))));
    assert_eq!(session.call("word").await, Ok(4));
    println!("the pool has restarted its worker: {:?} starts", starts());
    assert_eq!(starts(), [1, 2, 1]);

    // The budget of the pool is used up: its supervisor restarts it, and the cache behind it. The
    // address stays.
    assert!(session.call(POISON).await.is_err());
    assert_eq!(session.call("words").await, Ok(5));
    while starts() != [1, 3, 2] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("the supervisor has restarted the rest: {:?} starts", starts());

    // The messages that killed them are kept with the reason, to inspect, replay, or remove.
    let letters = session.dead_letters().remove_all();
    let words: Vec<_> = letters.iter().filter_map(|letter| letter.message).collect();
    println!("dead letters: {words:?}");
    assert_eq!(words, [POISON; 2]);
    assert!(letters.iter().all(|letter| letter.reason == DeadLetterReason::Panicked));

    let report = root.stop(Stop::within(SOON)).await;
    let names: Vec<_> = report.children.iter().map(|child| &*child.name).collect();
    println!("stopped in reverse: {names:?}");
    assert_eq!(names, ["connections", "front"]);
    Ok(())
}
