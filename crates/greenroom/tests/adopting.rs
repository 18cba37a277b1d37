//! Pools that contain actors and pools.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use greenroom::{Envelope, ManageError, NotAccepted, Overflow, policy::RoundRobin, prelude::*};

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
        let change = all.manage().adopt(other.address()).unwrap();
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
    assert_eq!(a.manage().adopt(a.address()).unwrap_err(), ManageError::ContainsItself);
    let own = a.manage().workers()[0].address().clone();
    assert_eq!(a.manage().adopt(own).unwrap_err(), ManageError::ContainsItself);
    a.manage().adopt(b.address()).unwrap().done(SOON).await;
    b.manage().adopt(c.address()).unwrap().done(SOON).await;
    assert_eq!(c.manage().adopt(a.address()).unwrap_err(), ManageError::ContainsItself);
    // Once the ring is open, it may be closed elsewhere.
    let slot = a.manage().workers()[1].slot();
    a.manage().remove_worker(slot).unwrap().done(SOON).await;
    c.manage().adopt(a.address()).unwrap().done(SOON).await;
    let keyed = Pool::new(|_| Clerk("keyed")).ordered_by(|ms: &u64| *ms).spawn().await.unwrap();
    assert_eq!(keyed.manage().adopt(a.address()).unwrap_err(), ManageError::Ordered);
}

#[tokio::test(start_paused = true)]
async fn p13_who_has_stopped_is_no_member_any_more_and_what_it_could_not_take_is_for_the_others() {
    let all = pool("own", 1).await;
    let other = pool("other", 1).await;
    all.manage().adopt(other.address()).unwrap().done(SOON).await;
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
    all.manage().adopt(slow.address()).unwrap().done(SOON).await;
    for _ in 0..5 {
        all.send_with(1_000, Envelope::urgent()).await.unwrap();
    }
    tokio::time::sleep(10 * SOON).await;
    assert_eq!(slow.stats().handled, 5);
    let left = all.manage().remove(1).unwrap().done(SOON).await;
    assert_eq!(left.left.len(), 1);
    assert_eq!(all.try_send(1).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert!(all.stats().ledger_holds() && slow.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p28_an_adopted_one_that_is_killed_leaves_and_nobody_takes_its_place() {
    let all = pool("own", 1).await;
    let one = pool("one", 1).await;
    assert!(all.manage().adopt(one.address()).unwrap().done(SOON).await.is_complete());
    let adopted = all.manage().workers()[1].address().erase();
    tokio::task::yield_now().await;
    adopted.exit(greenroom::ExitReason::Killed);
    adopted.ended().await;
    assert_eq!((all.stats().configured, all.manage().workers().len()), (1, 1));
    assert_eq!(all.call(0).await, Ok("own"));
    assert_eq!(one.call(0).await, Ok("one"), "it lives on by itself");
}
