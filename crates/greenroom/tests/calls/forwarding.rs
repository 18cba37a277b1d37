//! The parts that forwarding keeps (A07).

use std::time::Duration;

use greenroom::{
    Actor, Answer, Backoff, CallError, Class, Context, DeadLetterReason, Delivery, Envelope,
    ForwardError, NotAccepted, Overflow, Pool,
};
use tokio::time::Instant;

use crate::calls::desk::*;

#[tokio::test(start_paused = true)]
async fn a07_forward_keeps_port_sender_class_deadline_attempt_and_trace() {
    let halls = [Hall::default(), Hall::default(), Hall::default()];
    let mut pools = Vec::new();
    for hall in &halls {
        pools.push(hall.pool(1).spawn().await.unwrap());
    }
    halls[0].knows(&pools[1].address());
    halls[1].knows(&pools[2].address());
    let envelope = Envelope::urgent()
        .sender(pools[2].address().erase())
        .deadline(Duration::from_secs(10))
        .trace("00-abc");
    let answer = pools[0].call_with(Ask::Forward, envelope).await;
    assert_eq!(answer, Ok(99), "the last one's reply goes to the first caller");
    let seen = halls.each_ref().map(|hall| hall.carried.lock().unwrap().clone());
    let whole = Carried {
        message: Some(Ask::Forward),
        class: Class::Urgent,
        sender: Some("pool".to_owned()),
        left: Some(Duration::from_secs(10)),
        trace: Some("00-abc".to_owned()),
        attempt: 1,
        is_call: true,
    };
    assert_eq!(seen, [[whole.clone()], [whole.clone()], [whole]].map(Vec::from));
    pools[0].send(Ask::Forward).await.unwrap();
    settle().await;
    let stats: Vec<_> = pools.iter().map(Pool::stats).collect();
    let told: Vec<_> = stats.iter().map(|s| (s.accepted, s.handled, s.forwarded)).collect();
    assert_eq!(told, [(2, 2, 2), (2, 2, 2), (2, 2, 0)]);
    stats.into_iter().for_each(holds);
}

#[tokio::test(start_paused = true)]
async fn a07_forward_keeps_the_count_of_attempts() {
    /// Fails the first time, and forwards the retry.
    struct Second(Desks);

    impl Actor for Second {
        type Message = Ask;
        type Reply = u32;
        type Error = String;

        async fn handle(&mut self, _: Ask, _: &mut Context<Self>) -> Result<u32, String> {
            unreachable!("receive does it")
        }

        async fn receive(
            &mut self,
            delivery: &mut Delivery<Ask, u32, String>,
            _: &mut Context<Self>,
        ) -> Result<Answer<u32>, String> {
            if delivery.attempt() == 1 {
                return Err("again".to_owned());
            }
            delivery.forward(&self.0).await.map_err(|error| error.to_string())?;
            assert_eq!(delivery.message(), None);
            let again = delivery.forward(&self.0).await;
            assert_eq!(again, Err(ForwardError::Empty));
            Ok(Answer::Deferred)
        }
    }

    let hall = Hall::default();
    let back = hall.pool(1).spawn().await.unwrap();
    let address = back.address();
    let front = Pool::new(move |_| Second(address.clone())).workers(1);
    let front = front.retry(3, Backoff::new(SECOND, SECOND)).spawn().await.unwrap();
    assert_eq!(front.call(Ask::Echo(5)).await, Ok(5));
    assert_eq!(hall.carried.lock().unwrap()[0].attempt, 2);
    let stats = front.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.forwarded, stats.retries), (1, 1, 1));
    holds(stats);
    holds(back.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a07_what_is_not_accepted_stays_whole() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).capacity(1).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    back.try_send(Ask::Echo(1)).unwrap();
    let envelope = || Envelope::urgent().trace("t").deadline(SECOND);
    assert_eq!(front.call_with(Ask::ForwardWithin(10), envelope()).await, Ok(0), "cancelled");
    assert_eq!(back.stats().accepted, 2);
    let begun = Instant::now();
    assert_eq!(front.call_with(Ask::Forward, envelope()).await, Ok(99), "waits for room");
    assert!(begun.elapsed() > Duration::from_millis(50));
    holds(back.stop(SOON).await.stats);
    assert_eq!(front.call_with(Ask::Forward, envelope()).await, Ok(1), "answered by the first");
    let forwards = first.forwards.lock().unwrap().clone();
    assert_eq!(forwards, [Ok(()), Err(ForwardError::NotAccepted(NotAccepted::Stopped))]);
    assert_eq!(back.stats().rejected, 1);
    let carried = first.carried.lock().unwrap().clone();
    for (before, after) in [(0, 1), (3, 4)] {
        let left = carried[after].left;
        assert!(left > Some(Duration::ZERO), "{left:?}");
        assert_eq!(carried[after], Carried { left, ..carried[before].clone() });
    }
    let stats = front.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.forwarded), (3, 1));
    holds(stats);
}

#[tokio::test(start_paused = true)]
async fn a07_an_error_a_panic_or_a_kill_after_forwarding_changes_nothing_for_the_message() {
    for (ask, retries) in [
        (Ask::ForwardAndFail, false),
        (Ask::ForwardAndFail, true),
        (Ask::ForwardAndPanic, false),
        (Ask::ForwardAndPanic, true),
    ] {
        let (first, second) = (Hall::default(), Hall::default());
        let front = first.pool(1);
        let front = match retries {
            true => front.retry(3, Backoff::new(SECOND, SECOND)),
            false => front,
        };
        let front = front.spawn().await.unwrap();
        let back = second.pool(1).spawn().await.unwrap();
        first.knows(&back.address());
        assert_eq!(front.call(ask).await, Ok(99));
        front.send(ask).await.unwrap();
        assert_eq!(front.call(Ask::Echo(1)).await, Ok(1));
        let front = front.stop(SOON).await.stats;
        let back = back.stop(SOON).await.stats;
        assert_eq!((front.accepted, front.handled, front.forwarded), (3, 3, 2), "{ask:?}");
        assert_eq!((back.accepted, back.handled), (2, 2), "it was handled once");
        assert_eq!((first.dead(), second.dead()), (vec![], vec![]));
        holds(front);
        holds(back);
    }
}

#[tokio::test(start_paused = true)]
async fn a07_a_pool_that_drops_what_arrives_drops_what_is_forwarded() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).capacity(1).overflow(Overflow::DropNewest).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    back.try_send(Ask::Echo(1)).unwrap();
    assert_eq!(front.call(Ask::Forward).await, Err(CallError::Dropped));
    settle().await;
    let forwards = first.forwards.lock().unwrap().clone();
    assert_eq!(forwards, [Err(ForwardError::NotAccepted(NotAccepted::Dropped))]);
    holds(front.stop(SOON).await.stats);
    holds(back.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a07_a_deadline_goes_along_and_an_abandoned_call_is_skipped_where_it_arrives() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    let soon = Duration::from_millis(50);
    let (expired, late) = tokio::join!(
        front.call_with(Ask::Forward, Envelope::new().deadline(soon)),
        front.call_timeout(Ask::Forward, soon),
    );
    assert_eq!((expired, late), (Err(CallError::Expired), Err(CallError::TimedOut)));
    let dead = [
        (Some(Ask::Forward), DeadLetterReason::Expired),
        (Some(Ask::Forward), DeadLetterReason::Abandoned),
    ];
    assert_eq!((first.dead(), second.dead()), (vec![], dead.to_vec()));
    holds(front.stop(SOON).await.stats);
    holds(back.stop(SOON).await.stats);
}
