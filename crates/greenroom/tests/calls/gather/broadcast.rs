use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use greenroom::{
    CallError, DeadLetterReason, NotAccepted, Restarts, Stop,
    gather::{FirstReply, GatherError},
};
use tokio::time::Instant;

use super::crew::*;

const SECOND: Duration = Duration::from_secs(1);

fn failed() -> Error {
    CallError::Failed("no")
}

fn panicked() -> Error {
    CallError::Panicked("boom".to_owned())
}

#[tokio::test(start_paused = true)]
async fn p10_each_live_worker_gets_one_copy_and_each_copy_is_accepted_once() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let sent = all.send(Plan::of([Reply(0)])).await.unwrap();
    assert!(sent.is_complete());
    assert_eq!(sent.accepted().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(all.try_send(Plan::of([Reply(0)])).unwrap().is_complete());
    assert!(all.call(Plan::of([Reply(0)])).all().await.unwrap().is_complete());
    let stats = stopped(&pool).await;
    assert_eq!((stats.accepted, handled(&pool), stats.rejected), (9, vec![3, 3, 3], 0));
}

#[tokio::test(start_paused = true)]
async fn p10_results_are_told_per_worker_in_the_order_of_their_slots() {
    let pool = workers(4, 10).await;
    let all = pool.broadcast();
    let plan = Plan::of([After(30, 10), Fail, Panic, Reply(13)]);
    let gathered = all.call(plan).all().await.unwrap();
    assert!(gathered.is_complete(), "a worker that panics has answered with an error");
    let expected = [(0, Ok(10)), (1, Err(failed())), (2, Err(panicked())), (3, Ok(13))];
    assert_eq!(gathered.results(), expected);
    assert_eq!(gathered.successes().collect::<Vec<_>>(), [(0, &10), (3, &13)]);
    assert_eq!(gathered.errors().collect::<Vec<_>>(), [(1, &failed()), (2, &panicked())]);
}

#[tokio::test(start_paused = true)]
async fn p10_calls_go_out_at_once_and_not_one_after_the_other() {
    let pool = workers(10, 10).await;
    let all = pool.broadcast();
    let start = Instant::now();
    assert!(all.call(Plan::of([After(100, 1)])).all().await.is_ok());
    assert_eq!(ms(start), 100);
}

#[tokio::test(start_paused = true)]
async fn p10_a_full_worker_is_skipped_by_try_send_and_named() {
    let pool = workers(3, 1).await;
    let all = pool.broadcast();
    fill(&pool, 1, Hang).await;
    let sent = all.try_send(Plan::of([Reply(0)])).unwrap();
    assert!(!sent.is_complete());
    assert_eq!(sent.accepted().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(sent.refused().collect::<Vec<_>>(), [(1, NotAccepted::Full)]);
}

#[tokio::test(start_paused = true)]
async fn p10_a_message_that_nobody_accepts_comes_back() {
    let pool = workers(2, 1).await;
    let all = pool.broadcast();
    fill(&pool, 0, Hang).await;
    fill(&pool, 1, Hang).await;
    let error = all.try_send(Plan::of([Reply(7)])).unwrap_err();
    assert_eq!(error.refused(), [(0, NotAccepted::Full), (1, NotAccepted::Full)]);
    assert_eq!(error.to_string(), "none of 2 live workers accepted the message");
    assert_eq!(error.into_message(), Some(Plan::of([Reply(7)])));

    let sending = tokio::spawn(async move { all.send(Plan::of([Reply(8)])).await });
    tokio::task::yield_now().await;
    pool.stop(Stop::within(Duration::ZERO)).await;
    let error = sending.await.unwrap().unwrap_err();
    assert_eq!(error.refused(), [(0, NotAccepted::Stopped), (1, NotAccepted::Stopped)]);
    assert_eq!(error.into_message(), Some(Plan::of([Reply(8)])));
}

#[tokio::test(start_paused = true)]
async fn p10_send_waits_for_room_at_all_full_workers_at_once() {
    let pool = workers(3, 1).await;
    let all = pool.broadcast();
    fill(&pool, 0, After(200, 0)).await;
    fill(&pool, 2, After(100, 0)).await;
    let start = Instant::now();
    let sending = all.send(Plan::of([Reply(0)]));
    let quick = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        handled(&pool)
    };
    let (sent, handled) = tokio::join!(sending, quick);
    assert!(sent.unwrap().is_complete());
    assert_eq!((ms(start), handled), (200, vec![0, 1, 0]), "a worker with room waits for nobody");
}

#[tokio::test(start_paused = true)]
async fn p10_a_cancelled_send_leaves_nothing_in_a_full_worker() {
    let pool = workers(2, 1).await;
    let all = pool.broadcast();
    fill(&pool, 1, After(500, 0)).await;
    let sending = tokio::time::timeout(SECOND / 10, all.send(Plan::of([Reply(0)])));
    assert!(sending.await.is_err());
    assert_eq!((stopped(&pool).await.accepted, handled(&pool)), (3, vec![1, 2]));
}

#[tokio::test(start_paused = true)]
async fn p10_a_worker_that_is_dead_gets_no_copy() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    remove(&pool, 1).await;
    assert_eq!(all.workers().iter().map(|worker| worker.slot()).collect::<Vec<_>>(), [0, 2]);
    let gathered = all.call(Plan::of([Reply(0), Fail, Reply(2)])).all().await.unwrap();
    assert!(gathered.is_complete());
    assert_eq!(gathered.into_successes().collect::<Vec<_>>(), [(0, 0), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn p10_a_pool_that_stops_in_the_middle_resolves_the_copies_that_wait() {
    let pool = workers(2, 10).await;
    let all = pool.broadcast();
    one(&pool, 0).send(Plan::of([Hang])).await.unwrap();
    let calling = tokio::spawn(async move { all.call(Plan::of([Reply(1)])).all().await });
    until(|| pool.stats().queued == 1 && pool.stats().handled == 1).await;
    pool.stop(Stop::within(Duration::ZERO)).await;
    let gathered = calling.await.unwrap().unwrap();
    assert_eq!(gathered.results(), [(0, Err(CallError::Stopped)), (1, Ok(1))]);
}

#[tokio::test(start_paused = true)]
async fn p10_a_worker_that_dies_for_good_resolves_its_copy_and_is_left_out_afterwards() {
    let mortal = crew(3, 10).restarts(Restarts { max: 0, ..Restarts::default() });
    let pool = spawned(mortal, 3).await;
    let all = pool.broadcast();
    let gathered = all.call(Plan::of([Reply(0), After(10, 1), Panic])).quorum(2).await.unwrap();
    let dead = (2, Err(panicked()));
    assert_eq!(gathered.results(), [(0, Ok(0)), (1, Ok(1)), dead]);
    let gathered = all.call(Plan::of([Reply(0), Reply(1), Reply(2)])).all().await.unwrap();
    assert_eq!(gathered.results(), [(0, Ok(0)), (1, Ok(1))]);
}

#[tokio::test(start_paused = true)]
async fn p10_no_worker_at_all_is_an_error_at_once() {
    let pool = workers(1, 10).await;
    let all = pool.broadcast();
    remove(&pool, 0).await;
    let plan = || Plan::of([Reply(0)]);
    assert_eq!(all.call(plan()).all().await, Err(GatherError::NoWorkers));
    assert_eq!(all.call(plan()).first().await, Err(GatherError::NoWorkers));
    assert_eq!(all.call(plan()).first_answer(1).await, Err(GatherError::NoWorkers));
    assert_eq!(all.call(plan()).quorum(1).await, Err(GatherError::NoWorkers));
    assert!(all.send(plan()).await.unwrap_err().refused().is_empty());
    assert_eq!(all.try_send(plan()).unwrap_err().into_message(), Some(plan()));
}

#[tokio::test(start_paused = true)]
async fn p10_the_deadline_yields_what_has_arrived_by_then() {
    let pool = workers(4, 10).await;
    let all = pool.broadcast();
    let plan = || Plan::of([After(100, 10), Hang, Fail, After(5_000, 13)]);
    let start = Instant::now();
    let gathered = all.call(plan()).within(SECOND).all().await.unwrap();
    assert_eq!(ms(start), 1_000);
    assert!(!gathered.is_complete());
    assert_eq!(gathered.results(), [(0, Ok(10)), (2, Err(failed()))]);
    assert_eq!(gathered.unanswered(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn p10_an_answer_at_the_very_deadline_counts() {
    let pool = workers(2, 10).await;
    let all = pool.broadcast();
    let gathered = all.call(Plan::of([Reply(1)])).within(Duration::ZERO).all().await.unwrap();
    let answered = gathered.results().len() + gathered.unanswered().len();
    assert_eq!(answered, 2);
    let gathered = all.call(Plan::of([Reply(1)])).within(Duration::MAX).all().await.unwrap();
    assert!(gathered.is_complete());
}

#[tokio::test(start_paused = true)]
async fn p10_the_first_success_ends_the_wait_and_abandons_the_others() {
    let pool = workers(4, 10).await;
    let all = pool.broadcast();
    one(&pool, 3).send(Plan::of([After(1_000, 0)])).await.unwrap();
    let start = Instant::now();
    let first = all.call(Plan::of([Fail, After(300, 1), After(50, 2), Reply(3)])).first().await;
    assert_eq!(first, Ok(FirstReply { slot: 2, reply: 2 }));
    assert_eq!(ms(start), 50);
    let abandoned = stopped(&pool).await.dead_letters.of(DeadLetterReason::Abandoned);
    assert_eq!(abandoned, 1, "what had not been started was skipped");
    assert_eq!(handled(&pool), [0, 1, 1, 1], "what had been started was not torn out");
}

#[tokio::test(start_paused = true)]
async fn p10_first_tells_all_errors_when_all_have_failed() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let error = all.call(Plan::of([Fail, Panic, Fail])).first().await.unwrap_err();
    let errors = vec![(0, failed()), (1, panicked()), (2, failed())];
    assert_eq!(error, GatherError::AllFailed(errors));
    assert_eq!(error.to_string(), "all 3 workers failed");
}

#[tokio::test(start_paused = true)]
async fn p10_first_tells_the_errors_so_far_at_the_deadline() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let error = all.call(Plan::of([Hang, Fail, Hang])).within(SECOND).first().await.unwrap_err();
    let GatherError::TimedOut(gathered) = error else { panic!("{error:?}") };
    assert_eq!(gathered.results(), [(1, Err(failed()))]);
    assert_eq!(gathered.unanswered(), [0, 2]);
}

#[tokio::test(start_paused = true)]
async fn p10_a_quorum_is_had_with_one_worker_dead_and_one_slow() {
    let pool = workers(5, 10).await;
    let all = pool.broadcast();
    remove(&pool, 0).await;
    let plan = Plan::of([Reply(0), Panic, After(20, 2), Hang, After(10, 4)]);
    let start = Instant::now();
    let gathered = all.call(plan).quorum(2).await.unwrap();
    assert_eq!(ms(start), 20);
    let results = [(1, Err(panicked())), (2, Ok(2)), (4, Ok(4))];
    assert_eq!((gathered.results(), gathered.unanswered()), (&results[..], &[3][..]));
}

#[tokio::test(start_paused = true)]
async fn p10_a_quorum_that_cannot_be_reached_any_more_is_missed_at_once() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let start = Instant::now();
    let plan = Plan::of([Fail, After(100, 1), Panic]);
    let error = all.call(plan).quorum(2).await.unwrap_err();
    assert_eq!(error.to_string(), "0 workers replied, but 2 were needed");
    let GatherError::QuorumMissed { wanted: 2, got: 0, results } = error else {
        panic!("{error:?}")
    };
    assert_eq!((results.errors().count(), results.unanswered()), (2, &[1][..]));
    assert_eq!(ms(start), 0);
}

#[tokio::test(start_paused = true)]
async fn p10_a_quorum_that_is_late_tells_what_has_arrived() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let call = all.call(Plan::of([Hang, Reply(1), Hang])).within(SECOND);
    let error = call.quorum(2).await.unwrap_err();
    let GatherError::QuorumMissed { wanted: 2, got: 1, results } = error else {
        panic!("{error:?}")
    };
    assert_eq!((results.results(), results.unanswered()), (&[(1, Ok(1))][..], &[0, 2][..]));
}

#[tokio::test(start_paused = true)]
async fn p10_a_quorum_of_more_than_there_are_is_refused_and_nothing_is_sent() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    remove(&pool, 2).await;
    let error = all.call(Plan::of([Reply(0)])).quorum(3).await.unwrap_err();
    assert_eq!(error, GatherError::TooFewWorkers { wanted: 3, live: 2 });
    assert_eq!(pool.stats().accepted, 0);
}

#[tokio::test(start_paused = true)]
async fn p10_dropping_a_gathering_abandons_its_calls() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    assert!(all.send(Plan::of([After(1_000, 0)])).await.unwrap().is_complete());
    let gathering = all.call(Plan::of([Reply(0)])).all();
    assert!(tokio::time::timeout(SECOND / 2, gathering).await.is_err());
    let stats = stopped(&pool).await;
    assert_eq!((stats.accepted, stats.handled, stats.dead_lettered), (6, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn p10_a_clone_that_panics_has_sent_nothing() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let plan = || Plan::only_cloned([Reply(0)], 1);
    assert!(AssertUnwindSafe(all.send(plan())).catch_unwind().await.is_err());
    assert!(AssertUnwindSafe(all.call(plan()).all()).catch_unwind().await.is_err());
    assert!(AssertUnwindSafe(async { all.try_send(plan()) }).catch_unwind().await.is_err());
    assert_eq!(stopped(&pool).await.accepted, 0);
}

#[tokio::test(start_paused = true)]
async fn p10_a_message_is_cloned_once_less_than_there_are_workers() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    assert!(all.send(Plan::only_cloned([Reply(0)], 2)).await.unwrap().is_complete());
    assert!(all.call(Plan::only_cloned([Reply(0)], 2)).all().await.unwrap().is_complete());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_gathering_works_across_threads() {
    let pool = workers(20, 100).await;
    let all = pool.broadcast();
    for number in 0..100 {
        let gathered = all.call(Plan::of([Reply(number)])).all().await.unwrap();
        assert!(gathered.is_complete());
        assert_eq!(gathered.successes().filter(|(_, reply)| **reply == number).count(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn p12_a_first_answer_asks_so_many_workers_who_take_turns() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let mut slots = Vec::new();
    for _ in 0..6 {
        let first = all.call(Plan::of([Reply(0)])).first_answer(1).await.unwrap();
        slots.push(first.slot);
    }
    assert_eq!(slots, [0, 1, 2, 0, 1, 2]);
    let plan = || Plan::of([After(50, 0), After(20, 1), After(10, 2)]);
    let both = all.call(plan()).first_answer(2).await.unwrap();
    assert_eq!(both.slot, 1, "workers 0 and 1 were asked");
    let all_of_them = all.call(plan()).first_answer(9).await.unwrap();
    assert_eq!(all_of_them.slot, 2);
    let at_least_one = all.call(plan()).first_answer(0).await.unwrap();
    assert_eq!(at_least_one.slot, 1, "the next one's turn");
    assert_eq!(stopped(&pool).await.accepted, 6 + 2 + 3 + 1);
}

#[tokio::test(start_paused = true)]
async fn p12_a_first_answer_of_some_workers_fails_when_these_have_failed() {
    let pool = workers(3, 10).await;
    let all = pool.broadcast();
    let error = all.call(Plan::of([Fail, Fail, Reply(2)])).first_answer(2).await.unwrap_err();
    assert_eq!(error, GatherError::AllFailed(vec![(0, failed()), (1, failed())]));
}
