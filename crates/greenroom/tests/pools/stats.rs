//! The figures of a pool and its workers (P25), and that every message is accounted for (P26).

use std::{collections::VecDeque, time::Duration};

use greenroom::{
    Actor, Answer, Backoff, Class, Context, DeadLetterReason, Delivery, Envelope, FailureTable,
    FinalAction, Overflow, Pool, PoolBuilder, Restarts, Rule, Stop, policy::RoundRobin,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Deed {
    Sleep(Duration),
    Compute,
    Fail,
    Panic,
    PanicInPlace,
    Forward,
}

/// A key, and an instruction.
type Task = (u64, Deed);

struct Desk(Option<greenroom::Address<Task, (), ()>>);

impl Actor for Desk {
    type Message = Task;
    type Reply = ();
    type Error = ();

    /// Not always true: a message that was taken out leaves a letter without it.
    const KEEPS_MESSAGE: bool = true;

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Task, (), ()>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        match (delivery.message().map(|task| task.1), &self.0) {
            (Some(Deed::PanicInPlace), _) => panic!("in place"),
            (Some(Deed::Forward), Some(other)) => {
                delivery.forward(other).await.unwrap();
                Ok(Answer::Deferred)
            }
            _ => self.handle(delivery.take(), cx).await.map(Answer::Reply),
        }
    }

    async fn handle(&mut self, (_, deed): Task, _: &mut Context<Self>) -> Result<(), ()> {
        match deed {
            Deed::Sleep(time) => tokio::time::sleep(time).await,
            Deed::Fail => return Err(()),
            Deed::Panic => panic!("on purpose"),
            _ => {}
        }
        Ok(())
    }
}

const fn every(time: Duration) -> Backoff {
    Backoff::new(time, time)
}

fn desks(workers: usize) -> PoolBuilder<Desk> {
    let restarts = Restarts { backoff: every(Duration::ZERO), ..Restarts::default() };
    Pool::new(|_| Desk(None)).workers(workers).mailbox(100).restarts(restarts)
}

/// Equal to a hundredth.
fn about(time: Duration, expected: Duration) -> bool {
    time.abs_diff(expected) <= expected / 100
}

#[tokio::test(start_paused = true)]
async fn p25_a_pool_says_who_is_busy_and_since_when_and_how_long_messages_wait() {
    let pool = desks(2).name("desks").spawn().await.unwrap();
    pool.admin().resize(3).unwrap().done(ms(1_000)).await;
    for time in [1_000, 1_000, 500, 500] {
        pool.send((0, Deed::Sleep(ms(time)))).await.unwrap();
        tokio::time::sleep(ms(10)).await;
    }
    tokio::time::sleep(ms(260)).await;
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.live, stats.idle, stats.busy), (3, 3, 0, 3));
    assert_eq!((stats.capacity, stats.queued, stats.depth(), stats.in_hand), (300, 1, 1, 3));
    assert_eq!((pool.depth(), pool.admin().depth()), (1, 1));
    assert_eq!((stats.dispatched, stats.handled, stats.accepted), (3, 0, 4));
    assert_eq!(stats.oldest, Some(ms(270)));
    assert!(stats.worker_behavior.ends_with("Desk"));
    let workers = pool.admin().worker_stats();
    let mut busy: Vec<_> = workers.iter().filter_map(|worker| worker.busy_for).collect();
    busy.sort();
    assert_eq!(busy, [ms(280), ms(290), ms(300)]);
    assert!(workers.iter().all(|worker| worker.live && worker.mailbox_size == 100));
    assert_eq!(workers[2].name, "desks-2");

    tokio::time::sleep(ms(2_000)).await;
    let stats = pool.stats();
    assert_eq!((stats.busy, stats.idle, stats.oldest), (0, 3, None));
    assert_eq!((stats.handling.count, stats.queueing.count), (4, 4));
    assert!(about(stats.handling.p50, ms(500)), "{:?}", stats.handling);
    assert!(about(stats.handling.p99, ms(1_000)), "{:?}", stats.handling);
    assert!(about(stats.handling.max, ms(1_000)), "{:?}", stats.handling);
    assert!(about(stats.queueing.max, ms(490)), "{:?}", stats.queueing);
    assert!(stats.queueing.p50 < ms(1), "three of four did not wait");
    let workers = pool.admin().worker_stats();
    assert!(workers.iter().all(|worker| worker.busy_for.is_none()));
    assert_eq!(workers.iter().map(|worker| worker.handled).sum::<u64>(), 4);
}

#[tokio::test(start_paused = true)]
async fn p25_the_oldest_message_is_found_wherever_it_waits() {
    let sleep = (7, Deed::Sleep(ms(10_000)));
    for (place, pool) in [
        ("queue", desks(1).spawn().await.unwrap()),
        ("urgent", desks(1).spawn().await.unwrap()),
        ("mailbox", desks(1).dispatch(RoundRobin::new()).spawn().await.unwrap()),
        ("lane", desks(3).ordered_by(|task: &Task| task.0).spawn().await.unwrap()),
    ] {
        let class = if place == "urgent" { Class::Urgent } else { Class::Normal };
        pool.send(sleep).await.unwrap();
        tokio::time::sleep(ms(5)).await;
        for _ in 0..20 {
            pool.try_send_with(sleep, Envelope::new().class(class)).unwrap();
            tokio::time::sleep(ms(100)).await;
        }
        assert_eq!(pool.stats().oldest, Some(ms(2_000)), "{place}");
        tokio::time::sleep(ms(8_000)).await;
        assert_eq!(pool.stats().queued, 19);
        assert_eq!(pool.stats().oldest, Some(ms(9_900)), "{place}: the first has been started");
        pool.stop(Stop::within(Duration::ZERO)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn p25_messages_that_were_sent_together_have_an_age_and_are_measured() {
    let pool = desks(1).mailbox(2_000).quick_handlers(true).spawn().await.unwrap();
    pool.send((0, Deed::Sleep(ms(10_000)))).await.unwrap();
    tokio::time::sleep(ms(5)).await;
    for _ in 0..20 {
        let mut together: VecDeque<Task> = (0..64).map(|key| (key, Deed::Compute)).collect();
        pool.send_many(&mut together).await.unwrap();
        assert!(together.is_empty());
        tokio::time::sleep(ms(100)).await;
    }
    let stats = pool.stats();
    assert_eq!((stats.oldest, stats.queued, stats.depth()), (Some(ms(2_000)), 1_280, 1_280));
    tokio::time::sleep(ms(8_000)).await;
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.oldest), (1_281, None));
    // For quick ones, one of the first 256 of each 512 is measured; each represents 512.
    assert_eq!(stats.queueing.count, 1_536);
    // The first did not wait; the second, from number 512 on, was in the eighth group or one of the
    // next four.
    let waited = (ms(10_000 - 1_250)..ms(10_000 - 650)).contains(&stats.queueing.max);
    assert!(waited, "{:?}", stats.queueing);
}

#[tokio::test(start_paused = true)]
async fn p26_messages_that_were_sent_together_each_have_their_outcome() {
    for (stop, handled) in [(Stop::Now, 11), (Stop::within(ms(10_000)), 64)] {
        let pool = desks(1).quick_handlers(true).spawn().await.unwrap();
        let nap = |key| (key, Deed::Sleep(ms(u64::from(key == 10) * 100)));
        let mut together: VecDeque<Task> = (0..64).map(nap).collect();
        assert_eq!(pool.try_send_many(&mut together), Ok(64));
        tokio::time::sleep(ms(50)).await;
        let stats = pool.stats();
        assert_eq!((stats.handled, stats.in_hand, stats.queued), (10, 1, 53));
        let ledger = pool.stop(stop).await;
        assert_eq!(ledger.stats.handled, handled);
        assert_eq!(ledger.left_over.len() as u64, 53 * u64::from(stop == Stop::Now));
        assert!(ledger.stats.ledger_holds(), "{:?}", ledger.stats);
    }
}

#[tokio::test(start_paused = true)]
async fn p25_a_message_that_waits_for_another_attempt_is_not_old() {
    let finally = FinalAction::DeadLetter;
    let again = Rule::Retry { attempts: 2, backoff: every(ms(60_000)), finally };
    let pool = desks(1).retry_with(Task::clone, FailureTable::all(again)).spawn().await.unwrap();
    let call = pool.call((0, Deed::Fail));
    assert!(tokio::time::timeout(ms(1_000), call).await.is_err());
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.retries, stats.queued, stats.depth()), (1, 1, 0, 1));
    assert_eq!((pool.depth(), pool.admin().depth()), (1, 1), "it holds its place");
    assert_eq!(stats.oldest, None);
}

#[tokio::test(start_paused = true)]
async fn p25_of_quick_messages_one_in_512_is_measured_and_counts_for_all() {
    let pool = desks(1).capacity(10_000).spawn().await.unwrap();
    for (sent, measured) in [(512 * 2, 512 * 2), (512 * 10, 512 * 12)] {
        let mut tasks: VecDeque<Task> = vec![(0, Deed::Compute); sent].into();
        assert_eq!(pool.try_send_many(&mut tasks), Ok(sent));
        tokio::time::sleep(ms(10)).await;
        assert_eq!(pool.stats().handling.count, measured);
    }
}

#[tokio::test(start_paused = true)]
async fn p26_every_outcome_is_counted_once_and_dead_letters_by_their_reason() {
    let other = desks(1).spawn().await.unwrap();
    let address = other.address();
    let pool = Pool::new(move |_| Desk(Some(address.clone())))
        .workers(1)
        .capacity(4)
        .overflow(Overflow::DropOldest)
        .failure_policy(FailureTable {
            panic: Rule::Retry {
                attempts: 9,
                backoff: every(Duration::ZERO),
                finally: FinalAction::DeadLetter,
            },
            ..FailureTable::default()
        });
    let pool = pool.spawn().await.unwrap();
    pool.call((0, Deed::Forward)).await.unwrap();
    pool.call((0, Deed::Fail)).await.unwrap_err();
    pool.send((0, Deed::Fail)).await.unwrap();
    pool.send((0, Deed::Panic)).await.unwrap();
    pool.send((0, Deed::PanicInPlace)).await.unwrap();
    tokio::time::sleep(ms(10_000)).await;
    pool.send((0, Deed::Sleep(ms(100)))).await.unwrap();
    tokio::time::sleep(ms(1)).await;
    assert!(tokio::time::timeout(ms(1), pool.call((0, Deed::Compute))).await.is_err());
    let soon = Envelope::new().deadline(ms(1));
    pool.try_send_with((0, Deed::Compute), soon).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    pool.send((0, Deed::Sleep(ms(100)))).await.unwrap();
    tokio::time::sleep(ms(1)).await;
    for _ in 0..6 {
        pool.try_send((0, Deed::Compute)).unwrap();
    }
    let stats = pool.stats();
    let letters = stats.dead_letters;
    let expected = [
        (DeadLetterReason::Failed, 1),
        (DeadLetterReason::Panicked, 1),
        (DeadLetterReason::Poisoned, 1),
        (DeadLetterReason::Abandoned, 1),
        (DeadLetterReason::Expired, 1),
        (DeadLetterReason::Evicted, 2),
    ];
    assert!(expected.iter().all(|(reason, count)| letters.of(*reason) == *count), "{letters:?}");
    assert_eq!((letters.total(), stats.dead_lettered), (7, 7));
    assert_eq!((stats.handled, stats.forwarded, stats.failed), (2, 1, 1));
    assert_eq!((stats.queued, stats.in_hand, stats.retries, stats.restarts), (4, 1, 1, 3));
    assert!(stats.ledger_holds(), "{stats:?}");
    let worker = &pool.admin().worker_stats()[0];
    assert_eq!((worker.restarts, worker.dead_letters.total()), (3, 5), "two had no worker");
    assert_eq!(worker.dispatched, stats.dispatched);

    let report = pool.stop(Stop::Now).await;
    assert_eq!((report.stats.returned, report.stats.handled), (4, 3));
    assert!(report.stats.ledger_holds());
    assert_eq!(other.stats().accepted, 1, "what was forwarded");
}

#[test]
fn p25_on_several_threads_the_watchdog_keeps_the_time() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let pool = desks(1).spawn().await.unwrap();
        for _ in 0..3 {
            pool.send((0, Deed::Sleep(Duration::from_secs(3_600)))).await.unwrap();
        }
        let since = std::time::Instant::now();
        loop {
            let stats = pool.stats();
            let busy = pool.admin().worker_stats()[0].busy_for.unwrap_or_default();
            let at_least = stats.oldest.unwrap_or_default().min(busy);
            assert!(at_least <= since.elapsed() + ms(1_000));
            if at_least > ms(30) {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "the time stands still");
            tokio::task::yield_now().await;
        }
        pool.stop(Stop::within(Duration::ZERO)).await;
    });
}
