//! Workers that keep to a shard, and those that join them there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use greenroom_queue::{deque::Deque, entry::Entry, watchdog::Watched};

use crate::{
    Actor, Context, Pool, Restarts, Stop,
    pool::{
        builder::PoolBuilder,
        core::{Core, Urgency, park::park, push::take_and_push},
        outgoing::Outgoing,
        worker::in_flight::{InFlight, Source, Taken},
    },
};

/// Sleeps for the time that the message says, and counts.
struct Sleeper(Arc<AtomicU64>);

impl Actor for Sleeper {
    type Message = Duration;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, time: Duration, _cx: &mut Context<Self>) -> Result<(), ()> {
        if !time.is_zero() {
            thread::sleep(time);
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn sleepers(workers: usize) -> (PoolBuilder<Sleeper>, Arc<[Arc<AtomicU64>]>) {
    let slept: Arc<[Arc<AtomicU64>]> = (0..workers).map(|_| Arc::default()).collect();
    let counts = slept.clone();
    (Pool::new(move |slot| Sleeper(counts[slot].clone())).workers(workers), slept)
}

fn push(core: &Core<Sleeper, std::convert::Infallible>) {
    let mut payload = Outgoing::new(Duration::ZERO, None);
    assert!(take_and_push(core, &mut payload, (None, 0), 0, Urgency::Now).is_ok());
}

/// A pool whose workers are gone: a test plays their roles.
async fn deserted(workers: usize) -> Arc<Core<Sleeper, std::convert::Infallible>> {
    let core = sleepers(workers).0.restarts(Restarts::default()).spawn_core().await.unwrap();
    crate::pool::frame::task_guard::start_clock(&core.erased());
    core.frame.membership.abort(&(0..workers).collect::<Vec<_>>());
    while core.frame.lifecycle.running.load(Ordering::SeqCst) > 1 {
        crate::step_aside().await;
    }
    core
}

#[tokio::test]
async fn who_parks_an_urgent_message_between_two_runs_still_has_affinity_to_its_shard() {
    let core = deserted(2).await;
    core.queue.wake.note_pace(Duration::ZERO);
    let (mut first, mut other) = (InFlight::new(core.clone(), 0), InFlight::new(core.clone(), 1));
    push(&core);
    assert_eq!(first.take_anywhere(), Taken::InHand);
    first.settle(Ok(crate::Answer::Reply(())));
    assert_eq!(first.take_next(), Taken::Nothing);
    assert!(matches!(first.worker.source, Source::BetweenRuns { alone: true, .. }));
    let (message, urgent) = (Duration::ZERO, true);
    let entry =
        Entry { message, extra: None, key: None, hash: 0, urgent, stamp: Default::default() };
    first.worker.source =
        park(&core, 0, first.worker.source, Deque::only(entry), Duration::from_secs(3_600));
    drop(first);
    core.queue.wake.note_pace(Duration::ZERO);
    push(&core);
    assert_eq!(other.take_anywhere(), Taken::InHand, "nobody attends the shard");
    other.settle(Ok(crate::Answer::Reply(())));
}

#[test]
fn messages_that_take_long_are_shared_out_also_where_those_before_were_quick() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build().unwrap();
    let slept = runtime.block_on(async {
        let (builder, slept) = sleepers(4);
        let core = builder.capacity(10_000).spawn_core().await.unwrap();
        let pool = Pool::spawned(core.clone());
        core.queue.wake.note_pace(Duration::ZERO);
        let mut long = [Duration::from_micros(500); 1_000].into();
        assert_eq!(pool.address().try_send_many(&mut long), Ok(1_000));
        assert!(pool.stop(Stop::within(Duration::from_secs(60))).await.left_over.is_empty());
        slept
    });
    let slept: Vec<u64> = slept.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert!(slept.iter().all(|count| *count < 500), "one did it nearly alone: {slept:?}");
}

#[tokio::test]
async fn a_pool_that_has_ended_is_not_watched_for_what_was_left_over() {
    let core = deserted(2).await;
    push(&core);
    assert!(core.is_busy());
    let report = crate::pool::stop::run::stop(core.clone(), Stop::Now).await;
    assert_eq!(report.left_over.len(), 1);
    assert!(!core.is_busy());
}
