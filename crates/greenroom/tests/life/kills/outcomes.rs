//! The outcome of a message that a killed worker had in hand: the failure table decides, as it does
//! after a panic (P18).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, CallError, Context, DeadLetterReason, Delivery, FailureTable,
    FinalAction, Pool, Restarts, Rule, Stop,
};

use super::clerk::{Do, clerks, kill};

const SOON: Duration = Duration::from_secs(1);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(10));

fn killed(finally: FinalAction) -> FailureTable {
    FailureTable { kill: Rule::Once(finally), ..FailureTable::default() }
}

#[tokio::test(start_paused = true)]
async fn p18_the_message_of_a_killed_worker_is_tried_again_where_a_copy_is_kept() {
    let (pool, begun) = clerks(1);
    let pool = pool.retry(3, BACKOFF).spawn().await.unwrap();
    let call = pool.address();
    let call = tokio::spawn(async move { call.call(Do::HangOnce(7)).await });
    begun.reach(1).await;
    kill(&pool, 0);
    assert_eq!(call.await.unwrap(), Ok(7));
    let report = pool.stop(Stop::within(SOON)).await;
    assert_eq!((report.stats.retries, report.stats.restarts), (1, 1));
    assert!(report.stats.ledger_holds() && report.left_over.is_empty());
}

#[tokio::test(start_paused = true)]
async fn p18_a_message_whose_workers_are_killed_each_time_is_a_dead_letter_in_the_end() {
    let (pool, begun) = clerks(1);
    // Being killed is not the message's fault: it does not count towards the poison limit.
    let pool = pool.retry(5, BACKOFF).poison_limit(1).spawn().await.unwrap();
    let call = pool.address();
    let call = tokio::spawn(async move { call.call(Do::Hang(7)).await });
    for attempt in 1..=5 {
        begun.reach(attempt).await;
        kill(&pool, 0);
    }
    assert_eq!(call.await.unwrap(), Err(CallError::Killed));
    let stats = pool.stop(Stop::within(SOON)).await.stats;
    assert_eq!((stats.retries, stats.restarts, begun.now()), (4, 5, 5));
    assert_eq!(stats.dead_letters.of(DeadLetterReason::Killed), 1);
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p18_without_a_copy_it_is_a_dead_letter_and_its_caller_hears_of_the_kill() {
    let (pool, begun) = clerks(2);
    let letters = Arc::new(Mutex::new(Vec::new()));
    let kept = letters.clone();
    let pool = pool.on_dead_letter(move |letter| {
        kept.lock().unwrap().push((letter.message, letter.reason, letter.attempts));
    });
    let pool = pool.spawn().await.unwrap();
    let call = pool.address();
    let call = tokio::spawn(async move { call.call(Do::Hang(7)).await });
    begun.reach(1).await;
    (0..2).for_each(|place| kill(&pool, place));
    assert_eq!(call.await.unwrap(), Err(CallError::Killed));
    assert_eq!(*letters.lock().unwrap(), [(None, DeadLetterReason::Killed, 1)]);
    let report = pool.stop(Stop::within(SOON)).await;
    assert!(report.stats.ledger_holds() && report.left_over.is_empty());
}

#[tokio::test(start_paused = true)]
async fn p18_the_row_for_kills_decides() {
    for finally in
        [FinalAction::Drop, FinalAction::Return, FinalAction::DeadLetter, FinalAction::StopPool]
    {
        let (pool, begun) = clerks(1);
        let pool = pool.retry_with(Do::clone, killed(finally)).spawn().await.unwrap();
        pool.send(Do::Hang(7)).await.unwrap();
        begun.reach(1).await;
        kill(&pool, 0);
        tokio::time::sleep(SOON).await;
        let stats = pool.stats();
        let dropped = u64::from(finally == FinalAction::Drop);
        assert_eq!(
            (stats.dropped, stats.dead_letters.total()),
            (dropped, 1 - dropped),
            "{finally:?}"
        );
        assert_eq!(!pool.erase().is_alive(), finally == FinalAction::StopPool);
        assert!(pool.stop(Stop::within(SOON)).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn p18_k01_the_key_of_a_killed_worker_goes_on_in_order() {
    let (pool, begun) = clerks(4);
    let pool = pool.retry(3, BACKOFF).ordered_by(|message: &Do| message.number());
    let pool = pool.spawn().await.unwrap();
    let calls: Vec<_> = [Do::HangOnce(7), Do::Return(7), Do::Yield(7)]
        .map(|what| {
            let address = pool.address();
            tokio::spawn(async move { address.call(what).await })
        })
        .into();
    begun.reach(1).await;
    tokio::time::sleep(SOON).await;
    assert_eq!(begun.now(), 1, "what is behind it waits");
    (0..4).for_each(|place| kill(&pool, place));
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(7));
    }
    assert_eq!(begun.now(), 4);
    assert!(pool.stop(Stop::within(SOON)).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p18_a_key_is_parked_behind_a_kill_where_the_row_says_so() {
    let (pool, begun) = clerks(1);
    let pool = pool.retry_with(Do::clone, killed(FinalAction::ParkKey));
    let pool = pool.ordered_by(|message: &Do| message.number()).spawn().await.unwrap();
    pool.send(Do::HangOnce(7)).await.unwrap();
    pool.send(Do::Return(7)).await.unwrap();
    begun.reach(1).await;
    kill(&pool, 0);
    tokio::time::sleep(SOON).await;
    assert_eq!((begun.now(), pool.keys::<u64>().unwrap().parked().len()), (1, 1));
    assert!(pool.keys::<u64>().unwrap().replay(&7));
    tokio::time::sleep(SOON).await;
    assert_eq!(begun.now(), 3);
    assert!(pool.stop(Stop::within(SOON)).await.stats.ledger_holds());
}

/// Leaves its message in place.
struct Looks;

impl Actor for Looks {
    type Message = String;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: String, _: &mut Context<Self>) -> Result<(), ()> {
        unreachable!("it receives deliveries")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<String, (), ()>,
        _: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        assert!(delivery.message().is_some());
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn p18_two_thousand_kills_keep_no_message_until_the_stop() {
    let restarts = Restarts { max: u32::MAX, ..Restarts::default() };
    let letters = Arc::new(Mutex::new(0));
    let kept = letters.clone();
    let pool = Pool::new(|_| Looks).workers(1).restarts(restarts);
    let pool = pool.on_dead_letter(move |letter| {
        assert_eq!(letter.message.map(|message| message.len()), Some(20_000));
        *kept.lock().unwrap() += 1;
    });
    let pool = pool.spawn().await.unwrap();
    for number in 1..=2_000_u64 {
        pool.send("x".repeat(20_000)).await.unwrap();
        while pool.stats().in_hand == 0 {
            tokio::task::yield_now().await;
        }
        pool.admin().workers()[0].erase().exit(greenroom::ExitReason::Killed);
        while pool.stats().restarts < number {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    assert_eq!(*letters.lock().unwrap(), 2_000);
    let report = pool.stop(Stop::within(SOON)).await;
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p21_a_worker_is_killed_by_its_handle_and_no_other_with_it() {
    let (pool, begun) = clerks(2);
    let pool = pool.spawn().await.unwrap();
    let workers = pool.admin().workers();
    let calls: Vec<_> = workers
        .iter()
        .map(|worker| {
            let own = worker.address().clone();
            tokio::spawn(async move { own.call(Do::Hang(7)).await })
        })
        .collect();
    begun.reach(2).await;
    workers[1].kill();
    let [first, second] = <[_; 2]>::try_from(calls).unwrap();
    assert_eq!(second.await.unwrap(), Err(CallError::Killed));
    assert!(!first.is_finished(), "the other goes on");
    // The same handle reaches the next worker in the slot.
    assert_eq!(workers[1].call(Do::Return(3)).await, Ok(3));
    let report = pool.stop(Stop::within(Duration::ZERO)).await;
    assert_eq!(report.stats.restarts, 1);
    workers[1].kill();
    assert!(first.await.unwrap().is_err(), "of a pool that has stopped, nothing follows");
}
