//! Pools that contain actors and pools.

use std::time::Duration;

use greenroom::{
    CallError, DeadLetterReason, Envelope, NotAccepted, Overflow, SendError, policy::RoundRobin,
    pool::AdminError, prelude::*,
};

const SOON: Duration = Duration::from_secs(60);

/// Sleeps, then answers with its name.
struct Clerk(&'static str);

impl Actor for Clerk {
    type Message = u64;
    type Reply = &'static str;
    type Error = String;

    async fn handle(&mut self, ms: u64, _cx: &mut Context<Self>) -> Result<&'static str, String> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(self.0)
    }
}

async fn pool(name: &'static str, workers: usize) -> Pool<Clerk> {
    Pool::new(move |_| Clerk(name)).name(name).workers(workers).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn p13_p28_a_pool_hands_messages_on_to_those_that_it_has_adopted() {
    let all = Pool::new(|_| Clerk("own")).workers(1).dispatch(RoundRobin::new());
    let all = all.spawn().await.unwrap();
    let (one, two) = (pool("one", 1).await, pool("two", 2).await);
    for other in [&one, &two] {
        let change = all.admin().adopt(other.address()).unwrap();
        assert!(change.done(SOON).await.is_complete());
    }
    let mut names = Vec::new();
    for _ in 0..6 {
        names.push(all.call(0).await.unwrap());
    }
    assert_eq!(names, ["own", "one", "two", "own", "one", "two"]);
    let (stats, inner) = (all.stats(), two.stats());
    assert_eq!((stats.handled, stats.forwarded, inner.accepted, inner.handled), (6, 4, 2, 2));
    assert!(stats.ledger_holds() && inner.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p28_a_pool_that_would_contain_itself_is_refused() {
    let (a, b, c) = (pool("a", 1).await, pool("b", 1).await, pool("c", 1).await);
    assert_eq!(a.admin().adopt(a.address()).unwrap_err(), AdminError::ContainsItself);
    let own = a.admin().workers()[0].address().clone();
    assert_eq!(a.admin().adopt(own).unwrap_err(), AdminError::ContainsItself);
    a.admin().adopt(b.address()).unwrap().done(SOON).await;
    b.admin().adopt(c.address()).unwrap().done(SOON).await;
    assert_eq!(c.admin().adopt(a.address()).unwrap_err(), AdminError::ContainsItself);
    // Once the ring is broken, it may be closed elsewhere.
    let slot = a.admin().workers()[1].slot();
    a.admin().remove_worker(slot).unwrap().done(SOON).await;
    c.admin().adopt(a.address()).unwrap().done(SOON).await;
    let keyed = Pool::new(|_| Clerk("keyed")).ordered_by(|ms: &u64| *ms).spawn().await.unwrap();
    assert_eq!(keyed.admin().adopt(a.address()).unwrap_err(), AdminError::Ordered);
}

#[tokio::test(start_paused = true)]
async fn p13_who_has_stopped_is_no_member_any_more_and_what_it_could_not_take_is_for_the_others() {
    let all = pool("own", 1).await;
    let other = pool("other", 1).await;
    all.admin().adopt(other.address()).unwrap().done(SOON).await;
    assert_eq!(all.stats().configured, 2);
    other.stop(Stop::Now).await;
    for _ in 0..4 {
        assert_eq!(all.call(1).await, Ok("own"));
    }
    tokio::time::sleep(SOON).await;
    let stats = all.stats();
    assert_eq!((stats.configured, stats.live, stats.handled), (1, 1, 4));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p28_a_full_one_is_waited_for_and_leaves_with_what_it_holds() {
    let all = Pool::new(|_| Clerk("own")).workers(0).capacity(10).spawn().await.unwrap();
    let reject = Overflow::Reject;
    let slow = Pool::new(|_| Clerk("slow")).workers(1).capacity(1).overflow(reject);
    let slow = slow.spawn().await.unwrap();
    all.admin().adopt(slow.address()).unwrap().done(SOON).await;
    for _ in 0..5 {
        all.send_with(1_000, Envelope::urgent()).await.unwrap();
    }
    tokio::time::sleep(10 * SOON).await;
    assert_eq!(slow.stats().handled, 5);
    let left = all.admin().remove(1).unwrap().done(SOON).await;
    assert_eq!(left.left.len(), 1);
    assert_eq!(all.try_send(1).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert!(all.stats().ledger_holds() && slow.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p28_an_adopted_one_that_is_killed_leaves_and_nobody_takes_its_place() {
    let all = pool("own", 1).await;
    let one = pool("one", 1).await;
    assert!(all.admin().adopt(one.address()).unwrap().done(SOON).await.is_complete());
    let adopted = all.admin().workers()[1].address().erase();
    tokio::task::yield_now().await;
    adopted.exit(greenroom::ExitReason::Killed);
    adopted.ended().await;
    assert_eq!((all.stats().configured, all.admin().workers().len()), (1, 1));
    assert_eq!(all.call(0).await, Ok("own"));
    assert_eq!(one.call(0).await, Ok("one"), "it lives on by itself");
}

/// Refuses every message.
struct Refuses;

impl<M> greenroom::policy::Policy<M> for Refuses {
    fn choose(
        &self,
        _message: &M,
        _about: &greenroom::policy::About<'_>,
        _crew: &greenroom::policy::Crew<'_>,
    ) -> greenroom::policy::Choice {
        greenroom::policy::Choice::Refuse
    }
}

/// A pool that refuses everything for this reason.
async fn unwilling(why: NotAccepted) -> Pool<Clerk> {
    let builder = Pool::new(|_| Clerk("unwilling"));
    let spawned = match why {
        NotAccepted::NoWorkers => builder.workers(0).spawn().await,
        NotAccepted::Refused => builder.workers(1).dispatch(Refuses).spawn().await,
        NotAccepted::KeyRequired => {
            builder.workers(1).ordered_by_opt(|_| None::<u64>).key_required().spawn().await
        }
        other => unreachable!("{other:?}"),
    };
    spawned.unwrap()
}

const UNWILLING: [(NotAccepted, CallError<String, u64>); 3] = [
    (NotAccepted::NoWorkers, CallError::NoWorkers),
    (NotAccepted::Refused, CallError::NotTaken(NotAccepted::Refused)),
    (NotAccepted::KeyRequired, CallError::NotTaken(NotAccepted::KeyRequired)),
];

/// Checks that this completes at once: no time has passed.
async fn at_once<T>(done: impl Future<Output = T>) -> T {
    let begun = tokio::time::Instant::now();
    let done = done.await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    done
}

async fn adopt(all: &Pool<Clerk>, other: &Pool<Clerk>) {
    assert!(all.admin().adopt(other.address()).unwrap().done(SOON).await.is_complete());
}

#[tokio::test(start_paused = true)]
async fn what_an_adopted_pool_does_not_take_is_handled_by_another_worker_at_once() {
    for (why, _) in UNWILLING {
        for own in [1, 2] {
            let all = pool("own", own).await;
            let others = [unwilling(why).await, unwilling(why).await];
            for other in &others {
                adopt(&all, other).await;
            }
            for _ in 0..20 {
                assert_eq!(at_once(all.call(0)).await, Ok("own"), "{why:?}");
                all.send_with(0, Envelope::urgent()).await.unwrap();
            }
            let stats = all.stop(Stop::within(SOON)).await.stats;
            assert_eq!((stats.handled, stats.accepted), (40, 40), "{why:?}");
            assert!(stats.ledger_holds(), "{why:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whose_message_no_worker_takes_hears_why() {
    for (why, error) in UNWILLING {
        let all = Pool::new(|_| Clerk("none")).workers(0).spawn().await.unwrap();
        let others = [unwilling(why).await, unwilling(why).await];
        for other in &others {
            adopt(&all, other).await;
        }
        assert_eq!(at_once(all.call(0)).await, Err(error), "{why:?}");
        all.send(0).await.unwrap();
        tokio::time::sleep(SOON).await;
        let stats = all.stats();
        assert_eq!(
            (stats.dead_letters.of(DeadLetterReason::NoWorkers), stats.queued),
            (2, 0),
            "{why:?}"
        );
        assert!(stats.ledger_holds(), "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_holds_its_messages_does_so_until_one_that_it_has_adopted_takes_them() {
    let all = Pool::new(|_| Clerk("none")).workers(0).hold_when_empty().spawn().await.unwrap();
    let other = Pool::new(|_| Clerk("other")).workers(0).spawn().await.unwrap();
    adopt(&all, &other).await;
    let call = all.call(0);
    let later = async {
        tokio::time::sleep(SOON).await;
        assert!(all.stats().ledger_holds());
        drop(other.admin().add(1).unwrap());
    };
    assert_eq!(tokio::join!(call, later).0, Ok("other"));
    assert!(all.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn an_adopted_pool_that_has_stopped_is_no_worker_before_a_message_finds_it_gone() {
    let all = pool("own", 1).await;
    let other = pool("other", 1).await;
    adopt(&all, &other).await;
    other.stop(Stop::Now).await;
    tokio::task::yield_now().await;
    let stats = all.stats();
    assert_eq!((stats.configured, stats.live, all.admin().workers().len()), (1, 1, 1));
    assert_eq!(at_once(all.call(0)).await, Ok("own"));
}

#[tokio::test(start_paused = true)]
async fn what_waits_when_the_last_worker_has_stopped_is_not_waited_for() {
    let all = Pool::new(|_| Clerk("none")).workers(0).spawn().await.unwrap();
    let other = pool("other", 1).await;
    adopt(&all, &other).await;
    // One is in hand there, one waits for it there, and one waits here.
    let other_calls = [1_000, 1_000, 1_000].map(|ms| all.call(ms));
    let stop = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        other.stop(Stop::Now).await;
    };
    let [first, second, third] = other_calls;
    let (first, second, third, ()) = tokio::join!(first, second, third, stop);
    assert_eq!(first, Ok("other"));
    for lost in [second, third] {
        assert!(matches!(lost, Err(CallError::Stopped | CallError::NoWorkers)), "{lost:?}");
    }
    assert_eq!(all.call(0).await, Err(SendError::NoWorkers(0).into()));
    assert!(all.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_room_at_one_that_stops_is_for_the_others() {
    let all = Pool::new(|_| Clerk("own")).workers(1).dispatch(RoundRobin::new());
    let all = all.spawn().await.unwrap();
    let full = Pool::new(|_| Clerk("full")).workers(1).capacity(1).spawn().await.unwrap();
    adopt(&all, &full).await;
    full.send(10_000).await.unwrap();
    full.send(10_000).await.unwrap();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        full.stop(Stop::within(Duration::from_secs(1))).await;
    };
    let [first, second] = [0, 0].map(|ms| all.call(ms));
    assert_eq!(tokio::join!(first, second, stop), (Ok("own"), Ok("own"), ()));
    assert!(all.stats().ledger_holds());
}

/// The new worker was skipped, because the refusal was noted only by slot.
#[tokio::test(start_paused = true)]
async fn who_has_come_into_the_slot_of_one_that_refused_a_message_is_asked() {
    let all = Pool::new(|_| Clerk("none")).workers(0).dispatch(RoundRobin::new());
    let all = all.spawn().await.unwrap();
    let refuses = unwilling(NotAccepted::Refused).await;
    let full = Pool::new(|_| Clerk("full")).workers(1).capacity(1).spawn().await.unwrap();
    let takes = pool("takes", 1).await;
    full.send(10_000).await.unwrap();
    full.send(10_000).await.unwrap();
    adopt(&all, &refuses).await;
    adopt(&all, &full).await;
    let change = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        all.admin().remove_worker(0).unwrap().done(SOON).await;
        let adopted = all.admin().adopt(takes.address()).unwrap();
        assert_eq!(adopted.added(), [0]);
        adopted.done(SOON).await;
        full.stop(Stop::Now).await;
    };
    assert_eq!(tokio::join!(all.call(0), change).0, Ok("takes"));
    assert!(all.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn what_waits_when_the_last_worker_is_removed_by_hand_waits_for_the_next() {
    let all = pool("own", 1).await;
    let calls = [1_000, 0].map(|ms| all.call(ms));
    let change = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        all.admin().remove(1).unwrap().done(SOON).await;
        assert_eq!(all.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
        tokio::time::sleep(SOON).await;
        assert_eq!(all.stats().queued, 1);
        all.admin().add(1).unwrap().done(SOON).await;
    };
    let [first, second] = calls;
    assert_eq!(tokio::join!(first, second, change), (Ok("own"), Ok("own"), ()));
    all.admin().remove(1).unwrap().done(SOON).await;
    assert!(all.stats().ledger_holds());
}

/// True for the results that a caller may get while pools come and go.
fn is_an_outcome(reply: &Result<&'static str, CallError<String, u64>>) -> bool {
    use CallError::{Dropped, NoWorkers, NotAccepted, Stopped};
    matches!(reply, Ok(_) | Err(Stopped | NoWorkers | Dropped | NotAccepted(_)))
}

/// Adopts one pool after another, and ends each in a different way, while the pool itself grows and
/// shrinks.
async fn comes_and_goes(all: &Pool<Clerk>) {
    for round in 0..120_usize {
        let other = pool("other", 1 + round % 2).await;
        let Ok(change) = all.admin().adopt(other.address()) else { continue };
        let slot = change.added()[0];
        let _ = all.admin().resize(1 + round % 4);
        tokio::task::yield_now().await;
        match round % 5 {
            0 => drop(other.stop(Stop::Now).await),
            1 => drop(other.admin().remove(2)),
            2 => drop(all.admin().remove_worker(slot)),
            3 => drop(other.stop(Stop::within(SOON)).await),
            _ => {
                for worker in all.admin().workers() {
                    if worker.slot() == slot {
                        worker.address().erase().exit(greenroom::ExitReason::Killed);
                    }
                }
            }
        }
    }
}

async fn nobody_waits_for_ever() {
    let all = pool("own", 2).await;
    let callers = (0..4).map(|_| {
        let all = all.address();
        tokio::spawn(async move {
            for _ in 0..300 {
                let reply = all.call(0).await;
                assert!(is_an_outcome(&reply), "{reply:?}");
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    comes_and_goes(&all).await;
    all.admin().resize(2).unwrap().done(SOON).await;
    for caller in callers {
        caller.await.unwrap();
    }
    let stats = all.stop(Stop::within(SOON)).await.stats;
    assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
}

#[tokio::test]
async fn while_adopted_pools_come_and_go_no_caller_waits_for_ever() {
    nobody_waits_for_ever().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_adopted_pools_come_and_go_on_several_threads_no_caller_waits_for_ever() {
    nobody_waits_for_ever().await;
}

/// The adopted worker was one that the stop waited for, and the stop waited until its deadline.
#[tokio::test(start_paused = true)]
async fn a13_a_stop_does_not_wait_for_an_adopted_worker_that_has_stopped_meanwhile() {
    let all = Pool::new(|_| Clerk("none")).workers(0).spawn().await.unwrap();
    let other = Pool::new(|_| Clerk("other")).workers(1).capacity(1).spawn().await.unwrap();
    adopt(&all, &other).await;
    for _ in 0..5 {
        all.send(1_000).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let begun = tokio::time::Instant::now();
    let (report, _) = tokio::join!(all.stop(Stop::within(SOON)), other.stop(Stop::Now));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!((report.left_over.len(), report.stats.ledger_holds()), (2, true));
}

/// Its task was the last one, and its end was taken for a shutdown of the runtime.
#[tokio::test(start_paused = true)]
async fn p28_a_pool_outlives_the_last_adopted_worker_that_is_killed() {
    let all = pool("own", 1).await;
    let one = pool("one", 1).await;
    adopt(&all, &one).await;
    all.admin().remove_worker(0).unwrap().done(SOON).await;
    let adopted = all.admin().workers()[0].address().erase();
    tokio::time::sleep(Duration::from_millis(1)).await;
    adopted.exit(greenroom::ExitReason::Killed);
    adopted.ended().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((all.stats().configured, all.erase().exit_reason().is_some()), (0, false));
    all.admin().add(1).unwrap().done(SOON).await;
    assert_eq!(all.call(0).await, Ok("own"));
}

#[tokio::test(start_paused = true)]
async fn p13_p32_a_member_that_was_put_handles_what_it_was_handed_and_ends_with_the_pool() {
    for how in [Stop::within(SOON), Stop::Now] {
        let all = Pool::new(|_| Clerk("none")).workers(0).dispatch(RoundRobin::new());
        let all = all.spawn().await.unwrap();
        let (owned, adopted) = (pool("owned", 1).await, pool("adopted", 1).await);
        assert!(all.admin().put(owned.address()).unwrap().done(SOON).await.is_complete());
        adopt(&all, &adopted).await;
        for _ in 0..6 {
            all.send(10).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(all.stop(how).await.left_over.is_empty());
        assert!(matches!(owned.erase().ended().await, greenroom::ExitReason::Shutdown));
        assert_eq!(adopted.call(0).await, Ok("adopted"), "it is nobody's");
        let (owned, adopted) = (owned.stats(), adopted.stats());
        assert_eq!((owned.handled + adopted.handled, owned.returned), (7, 0), "{how:?}");
        assert!(owned.accepted > 0 && owned.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn p13_p32_a_pool_that_ends_at_once_ends_the_members_that_were_put() {
    let all = Pool::new(|_| Clerk("none")).workers(0).spawn().await.unwrap();
    let owned = pool("owned", 1).await;
    assert!(all.admin().put(owned.address()).unwrap().done(SOON).await.is_complete());
    all.send(1_000_000).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    all.erase().exit(greenroom::ExitReason::Killed);
    let begun = tokio::time::Instant::now();
    owned.erase().ended().await;
    assert!(begun.elapsed() < SOON, "its handler was dropped");
}

#[tokio::test(start_paused = true)]
async fn p13_p32_a_member_that_was_deleted_goes_on_by_itself() {
    let all = pool("own", 1).await;
    let (put, other) = (pool("put", 1).await, pool("other", 1).await);
    assert!(all.admin().put(put.address()).unwrap().done(SOON).await.is_complete());
    adopt(&all, &other).await;
    for member in [&put, &other] {
        let change = all.admin().delete(&member.address()).unwrap();
        assert_eq!(change.done(SOON).await.left.len(), 1);
        assert_eq!(all.admin().delete(&member.address()).unwrap_err(), AdminError::NotAdopted);
    }
    assert_eq!((all.stats().configured, all.call(0).await), (1, Ok("own")));
    all.stop(Stop::Now).await;
    assert_eq!((put.call(0).await, other.call(0).await), (Ok("put"), Ok("other")));
    assert_eq!(all.admin().delete(&put.address()).unwrap_err(), AdminError::NotRunning);
}

/// The error said that the pool keeps order, or would contain itself.
#[tokio::test(start_paused = true)]
async fn p22_a_pool_that_has_stopped_says_so_whatever_it_is_to_take_in() {
    let keyed = Pool::new(|_| Clerk("keyed")).ordered_by(|ms: &u64| *ms).spawn().await.unwrap();
    let (own, sticky) = (pool("own", 1).await, Pool::new(|_| Clerk("sticky")));
    let sticky = sticky.sticky_by(|ms: &u64| *ms).spawn().await.unwrap();
    for all in [keyed, sticky, own.clone()] {
        all.stop(Stop::Now).await;
        assert_eq!(all.admin().adopt(own.address()).unwrap_err(), AdminError::NotRunning);
    }
}
