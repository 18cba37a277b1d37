//! Messages that are queued on the fast path: rare duties are done all the same.

use std::{convert::Infallible, sync::Arc, time::Duration};

use greenroom_queue::{
    permits::{Queues, Refused},
    stamp::SAMPLED_OF_QUICK,
};

use crate::{
    Actor, Context, Pool,
    pool::{
        core::{
            Core, Urgency,
            push::{push_in_line, take_and_push},
            shut::count_accepted,
        },
        frame::{AnyCore, gate::close},
        outgoing::Outgoing,
    },
};

/// An actor that is never started: the test has the only thread.
struct Unstarted;

impl Actor for Unstarted {
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u64, _cx: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }
}

type Quick = Arc<Core<Unstarted, Infallible>>;

/// A pool that believes its handlers to be quick.
async fn quick(workers: usize, capacity: usize) -> Quick {
    let builder = Pool::new(|_| Unstarted).workers(workers).capacity(capacity);
    let core = builder.spawn_core().await.unwrap();
    core.frame.telemetry.coarse.note_pace(Duration::ZERO);
    core
}

/// Sends a message, and returns whether that took the fast path. No other sender runs when this one
/// has used up its turn.
fn try_send(core: &Quick, sender: u32) -> Result<bool, Refused> {
    let index = core.shard_of(&(None, 0), sender);
    let fast = core.queue.shards[index].inbox.lock().is_fast();
    match take_and_push(core, &mut Some(0), (None, 0), sender, Urgency::CanStepAside) {
        Err(Refused::NotNow) => try_send(core, sender),
        sent => sent.map(|()| fast),
    }
}

/// The numbers of the measured messages among those in the first shard.
fn measured(core: &Quick) -> Vec<usize> {
    let inbox = core.queue.shards[0].inbox.lock();
    let stamps = inbox.queue.iter().map(|entry| entry.stamp).enumerate();
    let sampled = stamps.filter(|(_, stamp)| stamp.is_sampled());
    sampled.map(|(number, _)| number).collect()
}

const EACH: usize = SAMPLED_OF_QUICK as usize;

/// The shards, in each of which one message is to be measured.
fn measured_blocks(core: &Quick) -> Vec<usize> {
    measured(core).into_iter().map(|number| number / EACH).collect()
}

#[tokio::test]
async fn every_message_that_is_due_is_measured() {
    let core = quick(1, 100_000).await;
    let easy = (0..4 * EACH).filter(|_| try_send(&core, 0) == Ok(true)).count();
    assert!(easy > 2 * EACH, "most are easy: {easy}");
    assert_eq!(measured_blocks(&core), [0, 1, 2, 3]);
}

#[tokio::test]
async fn every_message_that_is_due_is_measured_also_where_others_are_queued_between() {
    let core = quick(1, 100_000).await;
    let mut easy = 0;
    for number in 0..4 * EACH {
        if number % 7 == 5 {
            assert_eq!(core.queue.permits.try_take(1, &*core), Ok(1));
            assert_eq!(
                push_in_line(&core, 0, &mut Outgoing::new(0, None), (None, 0), false),
                Ok(())
            );
        } else {
            easy += usize::from(try_send(&core, 0) == Ok(true));
        }
    }
    assert!(easy > EACH, "many are easy: {easy}");
    assert_eq!(measured_blocks(&core), [0, 1, 2, 3]);
}

#[tokio::test]
async fn where_every_message_is_measured_none_takes_the_fast_path() {
    let builder = Pool::new(|_| Unstarted).workers(1).capacity(100_000);
    let core = builder.spawn_core().await.unwrap();
    assert!((0..EACH).all(|_| try_send(&core, 0) == Ok(false)));
    assert_eq!(measured(&core).len(), EACH);
}

#[tokio::test]
async fn a04_no_permit_is_lost_that_is_kept_for_the_fast_path() {
    for (workers, capacity) in [(2, 1_000), (4, 4_000), (16, 20_000)] {
        let core = quick(workers, capacity).await;
        let shards = core.queue.shards.len() as u32;
        let others = 1..shards;
        let mut accepted = 0;
        // All other shards keep permits for the fast path, and this one gets the rest.
        for sender in others.clone() {
            let inbox = &core.queue.shards[sender as usize].inbox;
            while accepted < capacity / 2 && !inbox.lock().is_fast() {
                assert!(try_send(&core, sender).is_ok());
                accepted += 1;
            }
            assert!(inbox.lock().is_fast());
        }
        while try_send(&core, 0).is_ok() {
            accepted += 1;
        }
        assert_eq!(accepted, capacity, "{workers} workers");
        for sender in 0..shards {
            assert_eq!(try_send(&core, sender), Err(Refused::Full));
        }
        assert_eq!((count_accepted(&core), core.depth()), (capacity as u64, capacity));
        assert_eq!(core.queue.permits.in_use(&*core), capacity);
    }
}

#[tokio::test]
async fn p22_a_closed_pool_takes_nothing_by_the_fast_path_and_its_permits_back() {
    let core = quick(1, 1_000).await;
    let mut accepted = 0;
    while !core.queue.shards[0].inbox.lock().is_fast() {
        assert!(try_send(&core, 0).is_ok());
        accepted += 1;
    }
    assert!(core.queue.permits.in_use(&*core) > accepted, "credit lies in the shard");
    close(&*core);
    assert_eq!(try_send(&core, 0), Err(Refused::Closed));
    assert_eq!((core.depth(), core.queue.permits.in_use(&*core)), (accepted, accepted));
    assert_eq!(core.reclaim(), 0, "none in a closed inbox");
}
