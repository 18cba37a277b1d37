//! Urgent before normal (A03), what a delivery carries (A02), and sends that wait no longer than told (A05).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use greenroom::{
    Actor, Address, Answer, Backoff, CallError, Class, Context, DeadLetterReason, Delivery,
    Envelope, NotAccepted, Overflow, Pool, PoolBuilder, SendError, Stop, TrySendError, WeakAddress,
    policy::{About, Choice, Crew, Policy},
};
use tokio::time::Instant;

/// What a message asks of its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Return,
    /// Suspends for so many milliseconds.
    Sleep(u64),
    FailOnce,
    /// Fails twice, each time after a millisecond.
    FailTwice,
}

/// A key, a number, and what to do.
type Note = (u8, u32, Deed);

/// Numbers in the order of their attempts, and the keys that are in hand.
#[derive(Default)]
struct Seen {
    order: Vec<u32>,
    carried: Vec<Carried>,
    /// When each was queued, and how long ago that was.
    queued: Vec<(Instant, Duration)>,
    in_hand: HashMap<u8, u32>,
    beside: Vec<(u32, u32)>,
}

/// What a delivery says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Carried {
    class: Class,
    sender: Option<String>,
    left: Option<Duration>,
    trace: Option<String>,
    attempt: u32,
    is_call: bool,
}

#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Seen>>);

impl Scribe {
    fn order(&self) -> Vec<u32> {
        self.0.lock().unwrap().order.clone()
    }

    fn beside(&self) -> Vec<(u32, u32)> {
        self.0.lock().unwrap().beside.clone()
    }

    fn begin(&self, delivery: &Delivery<Note, u32, ()>) {
        let (key, number, _) = *delivery.message().unwrap();
        let mut seen = self.0.lock().unwrap();
        seen.order.push(number);
        if let Some(other) = seen.in_hand.insert(key, number) {
            seen.beside.push((other, number));
        }
        seen.queued.push((delivery.queued_at(), delivery.queued_for()));
        seen.carried.push(Carried {
            class: delivery.class(),
            sender: delivery.sender().map(|sender| sender.name().to_owned()),
            left: delivery.time_left(),
            trace: delivery.trace().map(str::to_owned),
            attempt: delivery.attempt(),
            is_call: delivery.is_call(),
        });
    }
}

impl Actor for Scribe {
    type Message = Note;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self>) -> Result<u32, ()> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Note, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        self.begin(delivery);
        let (key, number, deed) = *delivery.message().unwrap();
        match deed {
            Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::FailTwice => tokio::time::sleep(Duration::from_millis(1)).await,
            Deed::Return | Deed::FailOnce => {}
        }
        self.0.lock().unwrap().in_hand.remove(&key);
        match (deed, delivery.attempt()) {
            (Deed::FailOnce, 1) | (Deed::FailTwice, 1 | 2) => Err(()),
            _ => Ok(Answer::Reply(number)),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn scribes(workers: usize) -> (PoolBuilder<Scribe>, Scribe) {
    let scribe = Scribe::default();
    let each = scribe.clone();
    let pool = Pool::new(move |_| each.clone()).workers(workers).capacity(1_000);
    (pool.retry(3, Backoff::new(Duration::from_millis(100), SECOND)), scribe)
}

/// A pool that keeps the order of keys, or one that does not.
async fn open(pool: PoolBuilder<Scribe>, keyed: bool) -> Pool<Scribe> {
    match keyed {
        true => pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap(),
        false => pool.spawn().await.unwrap(),
    }
}

fn normal(pool: &Pool<Scribe>, key: u8, number: u32, deed: Deed) {
    pool.try_send((key, number, deed)).unwrap();
}

fn urgent(pool: &Pool<Scribe>, key: u8, number: u32) {
    pool.try_send_with((key, number, Deed::Return), Envelope::urgent()).unwrap();
}

/// Until everybody sleeps.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn finish(pool: &Pool<Scribe>) {
    let report = pool.stop(Stop::within(Duration::from_secs(3_600))).await;
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
    assert_eq!(report.stats.accepted, report.stats.handled);
}

#[tokio::test(start_paused = true)]
async fn a03_urgent_comes_before_normal_also_in_the_middle_of_a_batch() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = open(pool, keyed).await;
        for number in 0..4 {
            normal(&pool, number as u8, number, Deed::Return);
        }
        // The whole batch lies with the worker by now.
        normal(&pool, 100, 100, Deed::Sleep(10));
        (5..8).for_each(|number| normal(&pool, number as u8, number, Deed::Return));
        settle().await;
        urgent(&pool, 50, 50);
        urgent(&pool, 51, 51);
        normal(&pool, 8, 8, Deed::Return);
        urgent(&pool, 52, 52);
        finish(&pool).await;
        let expected = [0, 1, 2, 3, 100, 50, 51, 52, 5, 6, 7, 8];
        match keyed {
            false => assert_eq!(scribe.order(), expected),
            // While a key is suspended others go on.
            true => assert_eq!(scribe.order()[..5], expected[..5]),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a03_after_64_urgent_messages_in_a_row_comes_a_normal_one() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = open(pool, keyed).await;
        normal(&pool, 0, 0, Deed::Sleep(1));
        settle().await;
        (1..=4).for_each(|number| normal(&pool, 0, number, Deed::Return));
        (100..300).for_each(|number| urgent(&pool, 0, number));
        finish(&pool).await;
        let mut expected = vec![0];
        for (run, number) in [(100..164, Some(1)), (164..228, Some(2)), (228..292, Some(3))] {
            expected.extend(run);
            expected.extend(number);
        }
        expected.extend(292..300);
        expected.push(4);
        assert_eq!(scribe.order(), expected, "keyed: {keyed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a03_a_run_that_was_over_is_not_counted_on() {
    let (pool, scribe) = scribes(1);
    let pool = pool.spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::Sleep(1));
    settle().await;
    (100..164).for_each(|number| urgent(&pool, 0, number));
    (1..=3).for_each(|number| normal(&pool, 0, number, Deed::Return));
    normal(&pool, 0, 4, Deed::Sleep(10));
    normal(&pool, 0, 5, Deed::Return);
    tokio::time::sleep(Duration::from_millis(3)).await;
    (200..210).for_each(|number| urgent(&pool, 0, number));
    finish(&pool).await;
    assert_eq!(scribe.order()[69..], [200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 5]);
}

#[tokio::test(start_paused = true)]
async fn a03_p27_urgent_messages_of_a_sender_keep_their_order_in_a_pool_of_one() {
    let (pool, scribe) = scribes(1);
    let pool = pool.ordered_by_opt(|note: &Note| (note.0 > 0).then_some(note.0)).spawn().await;
    let pool = pool.unwrap();
    for round in 0..20_u32 {
        // The worker suspends with urgent messages behind it, and finds more when it is back.
        let first = round * 10;
        normal(&pool, 1, first, Deed::Sleep(2));
        (1..4).for_each(|step| urgent(&pool, 2, first + step));
        settle().await;
        (4..7).for_each(|step| urgent(&pool, 2, first + step));
    }
    finish(&pool).await;
    let urgent: Vec<_> = scribe.order().into_iter().filter(|n| n % 10 != 0).collect();
    assert!(urgent.is_sorted(), "{urgent:?}");
    assert_eq!(scribe.beside(), []);
}

#[tokio::test(start_paused = true)]
async fn a03_k01_an_urgent_message_overtakes_its_own_key_and_never_runs_beside_it() {
    for workers in [1, 4] {
        let (pool, scribe) = scribes(workers);
        let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
        normal(&pool, 1, 0, Deed::Sleep(100));
        (1..5).for_each(|number| normal(&pool, 1, number, Deed::Sleep(1)));
        settle().await;
        urgent(&pool, 1, 50);
        settle().await;
        urgent(&pool, 1, 51);
        finish(&pool).await;
        assert_eq!(scribe.order(), [0, 50, 51, 1, 2, 3, 4], "{workers} workers");
        assert_eq!(scribe.beside(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a03_an_urgent_message_behind_a_suspended_key_comes_before_normal_ones_of_other_keys() {
    for others in [&[][..], &[51], &[51, 52, 53]] {
        let (pool, scribe) = scribes(1);
        let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
        normal(&pool, 1, 0, Deed::Sleep(10));
        settle().await;
        normal(&pool, 2, 1, Deed::Return);
        normal(&pool, 3, 2, Deed::Return);
        urgent(&pool, 1, 50);
        others.iter().for_each(|number| urgent(&pool, 2, *number));
        finish(&pool).await;
        let order = scribe.order();
        let urgent = &order[1..order.len() - 2];
        assert!(urgent.iter().all(|number| *number >= 50), "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a03_an_urgent_message_comes_before_lanes_that_are_ready() {
    let (pool, scribe) = scribes(1);
    let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
    normal(&pool, 9, 0, Deed::Sleep(10));
    settle().await;
    // Key 1 has had its quota in the middle of these, and waits in a lane of its own behind key 2.
    (100..140).for_each(|number| normal(&pool, 1, number, Deed::Return));
    normal(&pool, 2, 1, Deed::Sleep(20));
    normal(&pool, 3, 2, Deed::Return);
    tokio::time::sleep(Duration::from_millis(15)).await;
    (3..6).for_each(|number| normal(&pool, 4, number, Deed::Return));
    urgent(&pool, 1, 50);
    urgent(&pool, 5, 51);
    finish(&pool).await;
    let order = scribe.order();
    let place = |number: u32| order.iter().position(|n| *n == number).unwrap();
    assert!(place(50) < place(3) && place(51) < place(3), "{order:?}");
    assert!(place(50) < place(139), "{order:?}");
    let of_key_1: Vec<_> = order.into_iter().filter(|n| *n >= 100).collect();
    assert!(of_key_1.is_sorted());
    assert_eq!(scribe.beside(), []);
}

#[tokio::test(start_paused = true)]
async fn a03_a_keyed_pool_of_quick_handlers_whose_first_messages_are_urgent_goes_on() {
    for workers in [1, 2] {
        let (pool, scribe) = scribes(workers);
        let pool = pool.quick_handlers(true).ordered_by(|note: &Note| note.0).spawn().await;
        let pool = pool.unwrap();
        let worker = pool.admin().workers()[0].clone();
        for round in (0..40).step_by(8) {
            (0..3).for_each(|number| urgent(&pool, 1, round + number));
            settle().await;
            for number in 3..6 {
                worker.address().try_send((2, round + number, Deed::Return)).unwrap();
            }
            settle().await;
            (6..8).for_each(|number| normal(&pool, 3, round + number, Deed::Return));
            settle().await;
        }
        finish(&pool).await;
        assert_eq!(scribe.order(), (0..40).collect::<Vec<_>>(), "{workers} workers");
        assert_eq!(pool.stats().restarts, 0, "{workers} workers");
    }
}

/// Sends itself an urgent message while it handles the first.
#[derive(Clone, Default)]
struct Alarmed(Arc<Mutex<Vec<u32>>>, Arc<OnceLock<WeakAddress<u32, (), ()>>>);

impl Actor for Alarmed {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
        self.0.lock().unwrap().push(number);
        if number == 0 {
            let pool = self.1.get().unwrap().upgrade().unwrap();
            pool.try_send_with(99, Envelope::urgent()).unwrap();
        }
        Ok(())
    }
}

#[tokio::test]
async fn a03_what_becomes_urgent_while_a_message_is_handled_is_next() {
    for (quick, keyed) in [(false, false), (false, true), (true, false), (true, true)] {
        let actor = Alarmed::default();
        let Alarmed(order, own) = actor.clone();
        let pool = Pool::new(move |_| actor.clone()).workers(1).quick_handlers(quick);
        let pool = match keyed {
            true => pool.ordered_by(|number: &u32| *number).spawn().await.unwrap(),
            false => pool.spawn().await.unwrap(),
        };
        assert!(own.set(pool.address().downgrade()).is_ok());
        (0..5).for_each(|number| pool.try_send(number).unwrap());
        while pool.stats().handled < 6 {
            tokio::task::yield_now().await;
        }
        let report = pool.stop(Stop::within(SECOND)).await;
        assert!(report.left_over.is_empty());
        assert_eq!(*order.lock().unwrap(), [0, 99, 1, 2, 3, 4], "quick: {quick}, keys: {keyed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a03_a_message_that_waits_for_another_attempt_stays_the_head_of_its_key() {
    for (workers, deed) in [(1, Deed::FailTwice), (4, Deed::FailTwice), (2, Deed::FailOnce)] {
        let (pool, scribe) = scribes(workers);
        let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
        normal(&pool, 1, 0, deed);
        normal(&pool, 1, 1, Deed::Return);
        settle().await;
        settle().await;
        urgent(&pool, 1, 50);
        settle().await;
        urgent(&pool, 1, 51);
        urgent(&pool, 2, 60);
        settle().await;
        finish(&pool).await;
        let retried: &[u32] = if deed == Deed::FailOnce { &[0] } else { &[0, 0] };
        let expected = [&[0, 60], retried, &[50, 51, 1]].concat();
        assert_eq!(scribe.order(), expected, "{workers} workers");
    }
}

#[tokio::test(start_paused = true)]
async fn a03_an_urgent_message_that_is_attempted_again_stays_urgent_and_the_head() {
    let (pool, scribe) = scribes(1);
    let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
    pool.try_send_with((1, 0, Deed::FailOnce), Envelope::urgent()).unwrap();
    urgent(&pool, 1, 1);
    normal(&pool, 1, 2, Deed::Return);
    finish(&pool).await;
    assert_eq!(scribe.order(), [0, 0, 1, 2]);
    let carried = scribe.0.lock().unwrap().carried.clone();
    let classes: Vec<_> = carried.iter().map(|carried| (carried.class, carried.attempt)).collect();
    let urgent = Class::Urgent;
    assert_eq!(classes, [(urgent, 1), (urgent, 2), (urgent, 1), (Class::Normal, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a03_urgent_without_keys_is_attempted_again_and_nobody_is_left_out() {
    for workers in [1, 4] {
        let (pool, scribe) = scribes(workers);
        let pool = pool.spawn().await.unwrap();
        for round in 0..50 {
            normal(&pool, 0, round * 10, Deed::Return);
            pool.try_send_with((0, round * 10 + 1, Deed::FailOnce), Envelope::urgent()).unwrap();
            normal(&pool, 0, round * 10 + 2, Deed::Return);
            tokio::task::yield_now().await;
        }
        finish(&pool).await;
        assert_eq!(scribe.order().len(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a03_urgent_messages_of_many_shards_come_before_normal_ones() {
    let (pool, scribe) = scribes(2);
    let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
    let blocked = [(200, 1_000, Deed::Sleep(10)), (201, 1_001, Deed::Sleep(10))];
    blocked.into_iter().for_each(|note| pool.try_send(note).unwrap());
    settle().await;
    (0..100).for_each(|number| normal(&pool, number as u8, number, Deed::Return));
    (0..100).for_each(|number| urgent(&pool, number as u8, 500 + number));
    finish(&pool).await;
    let order = scribe.order();
    assert_eq!(order.len(), 202);
    // A worker that steps aside with a shard's message in hand keeps the few that are left there; others go on.
    let early = order[2..102].iter().filter(|number| **number >= 500).count();
    assert!(early >= 90, "{early} of the first hundred are urgent: {order:?}");
    assert_eq!(scribe.beside(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a03_urgent_messages_reach_a_saturated_pool_with_several_senders() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(4);
        let pool = open(pool, keyed).await;
        let pool = Arc::new(pool);
        let senders: Vec<_> = (0..4_u32)
            .map(|sender| {
                let address = pool.address();
                tokio::spawn(async move {
                    for step in 0..2_000 {
                        let number = sender * 10_000 + step;
                        let key = (number % 7) as u8;
                        let sent = match step % 5 {
                            0 => address.send_with((key, number, Deed::Return), Envelope::urgent()),
                            _ => address.send_with((key, number, Deed::Return), Envelope::new()),
                        };
                        sent.await.unwrap();
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.unwrap();
        }
        finish(&pool).await;
        let order = scribe.order();
        assert_eq!(order.len(), 8_000);
        if keyed {
            assert_eq!(scribe.beside(), []);
            let mut last = HashMap::new();
            for number in order {
                let line = (number / 10_000, number % 10_000 % 5 == 0, number % 7);
                let before = last.insert(line, number);
                assert!(before.is_none_or(|before| before < number), "{number} after {before:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a04_the_bound_holds_for_urgent_messages() {
    let (pool, _) = scribes(1);
    let pool = pool.capacity(3).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::Sleep(10));
    settle().await;
    normal(&pool, 0, 1, Deed::Return);
    urgent(&pool, 0, 2);
    urgent(&pool, 0, 3);
    let refused = pool.try_send_with((0, 4, Deed::Return), Envelope::urgent());
    assert!(matches!(refused, Err(TrySendError::Full((0, 4, Deed::Return)))));
    assert_eq!((pool.stats().queued, pool.stats().rejected), (3, 1));
    finish(&pool).await;
    let room = pool.try_reserve();
    assert_eq!(room.unwrap_err(), NotAccepted::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a04_where_the_oldest_makes_room_it_is_a_normal_one_while_there_is_one() {
    let (pool, scribe) = scribes(1);
    let dead = Arc::new(Mutex::new(Vec::new()));
    let seen = dead.clone();
    let pool = pool
        .capacity(2)
        .overflow(Overflow::DropOldest)
        .on_dead_letter(move |letter| {
            seen.lock().unwrap().push((letter.message.unwrap().1, letter.reason))
        })
        .spawn()
        .await
        .unwrap();
    normal(&pool, 0, 0, Deed::Sleep(10));
    settle().await;
    urgent(&pool, 0, 1);
    normal(&pool, 0, 2, Deed::Return);
    urgent(&pool, 0, 3);
    urgent(&pool, 0, 4);
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(scribe.order(), [0, 3, 4]);
    let evicted = DeadLetterReason::Evicted;
    assert_eq!(*dead.lock().unwrap(), [(2, evicted), (1, evicted)]);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a04_a_message_that_makes_room_while_it_waits_for_an_attempt_is_not_counted_as_waiting() {
    let (pool, _) = scribes(1);
    let pool = pool.capacity(2).overflow(Overflow::DropOldest).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::FailOnce);
    settle().await;
    normal(&pool, 0, 1, Deed::Sleep(1_000));
    // The retry has come due, and lies in the queue behind the message in hand.
    tokio::time::sleep(Duration::from_millis(500)).await;
    (2..6).for_each(|number| normal(&pool, 0, number, Deed::Return));
    let stats = pool.stats();
    assert!(stats.ledger_holds(), "{stats:?}");
    pool.stop(Stop::within(Duration::from_secs(60))).await;
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.waiting == 0, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn a04_lanes_whose_only_message_made_room_are_closed() {
    let (pool, scribe) = scribes(1);
    let pool = pool.capacity(20).overflow(Overflow::DropOldest);
    let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
    normal(&pool, 9, 0, Deed::Sleep(10));
    settle().await;
    (100..117).for_each(|number| normal(&pool, 1, number, Deed::Return));
    normal(&pool, 2, 1, Deed::Sleep(50));
    normal(&pool, 3, 2, Deed::Return);
    tokio::time::sleep(Duration::from_millis(20)).await;
    (200..230).for_each(|number| normal(&pool, 1, number, Deed::Return));
    tokio::time::sleep(SECOND).await;
    normal(&pool, 1, 300, Deed::Return);
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(report.left_over.is_empty());
    assert_eq!(scribe.order().last(), Some(&300));
}

#[tokio::test(start_paused = true)]
async fn a13_a_stop_gives_urgent_messages_back_before_normal_ones() {
    for keyed in [false, true] {
        let (pool, _) = scribes(1);
        let pool = open(pool, keyed).await;
        normal(&pool, 0, 0, Deed::Sleep(10_000));
        settle().await;
        normal(&pool, 0, 1, Deed::Return);
        urgent(&pool, 0, 2);
        urgent(&pool, 0, 3);
        let waiting = pool.call_with((0, 4, Deed::Return), Envelope::urgent());
        let (answer, report) = tokio::join!(waiting, pool.stop(Stop::within(SECOND)));
        assert_eq!(answer, Err(CallError::Stopped));
        let left: Vec<_> = report.left_over.iter().map(|note| note.1).collect();
        assert_eq!(left, [0, 2, 3, 4, 1], "keyed: {keyed}");
        assert!(report.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn a03_a_workers_own_mailbox_has_both_classes_and_starves_nobody() {
    let (pool, scribe) = scribes(1);
    let pool = pool.spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    normal(&pool, 0, 0, Deed::Sleep(10));
    settle().await;
    (1..=3).for_each(|number| normal(&pool, 0, number, Deed::Return));
    for number in 100..300 {
        worker.try_send_with((0, number, Deed::Return), Envelope::urgent()).unwrap();
        worker.try_send((0, number + 1_000, Deed::Return)).unwrap();
    }
    finish(&pool).await;
    let order = scribe.order();
    assert_eq!(order.len(), 404);
    assert_eq!(order[1..65], (100..164).collect::<Vec<_>>());
    assert!(order[65] >= 1_000 || order[65] < 4, "after a run comes a normal one: {}", order[65]);
    let place = |number: u32| order.iter().position(|n| *n == number).unwrap();
    assert!(place(1) < 200, "the pool's queue has its turn: {}", place(1));
    let line = |from: u32| order.iter().filter(move |n| (from..from + 200).contains(*n));
    assert!(line(100).is_sorted() && line(1_100).is_sorted());
}

#[tokio::test(start_paused = true)]
async fn a03_what_a_worker_that_leaves_had_in_its_mailbox_stays_urgent() {
    let (pool, scribe) = scribes(2);
    let pool = pool.spawn().await.unwrap();
    let worker = pool.admin().workers().remove(1);
    // Whichever of them has which in hand.
    normal(&pool, 0, 0, Deed::Sleep(10));
    normal(&pool, 0, 1, Deed::Sleep(30));
    settle().await;
    (2..5).for_each(|number| normal(&pool, 0, number, Deed::Sleep(50)));
    worker.try_send((0, 60, Deed::Return)).unwrap();
    worker.try_send_with((0, 50, Deed::Return), Envelope::urgent()).unwrap();
    let change = pool.admin().remove_worker(1).unwrap();
    change.done(SECOND).await;
    finish(&pool).await;
    let order = scribe.order();
    let place = |number: u32| order.iter().position(|n| *n == number).unwrap();
    assert!(place(50) < place(3) && place(50) < place(60), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a02_what_a_sender_says_arrives_also_with_a_further_attempt() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = pool.name("scribes");
        let pool = open(pool, keyed).await;
        let envelope = Envelope::urgent()
            .sender(pool.address().erase())
            .deadline(Duration::from_secs(10))
            .trace("00-abc-def-01");
        assert_eq!(pool.call_with((1, 7, Deed::FailOnce), envelope).await, Ok(7));
        assert_eq!(pool.call((1, 8, Deed::Return)).await, Ok(8));
        pool.send((1, 9, Deed::Return)).await.unwrap();
        settle().await;
        let carried = scribe.0.lock().unwrap().carried.clone();
        let first = Carried {
            class: Class::Urgent,
            sender: Some("scribes".to_owned()),
            left: Some(Duration::from_secs(10)),
            trace: Some("00-abc-def-01".to_owned()),
            attempt: 1,
            is_call: true,
        };
        assert_eq!(carried[0], first);
        let left = carried[1].left.unwrap();
        assert!(left < Duration::from_secs(10) && left > Duration::from_secs(9), "{left:?}");
        assert_eq!(carried[1], Carried { attempt: 2, left: Some(left), ..first.clone() });
        let plain = Carried {
            class: Class::Normal,
            sender: None,
            left: None,
            trace: None,
            attempt: 1,
            is_call: true,
        };
        assert_eq!(carried[2], plain);
        assert_eq!(carried[3], Carried { is_call: false, ..plain });
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_message_is_not_started_after_its_deadline_not_even_for_a_further_attempt() {
    let (pool, scribe) = scribes(1);
    let dead = Arc::new(Mutex::new(Vec::new()));
    let seen = dead.clone();
    let pool = pool.on_dead_letter(move |letter| {
        seen.lock().unwrap().push((letter.message.unwrap().1, letter.reason, letter.attempts));
    });
    let pool = pool.spawn().await.unwrap();
    let soon = || Envelope::new().deadline(Duration::from_millis(20));
    let failing = pool.call_with((0, 1, Deed::FailOnce), soon());
    assert_eq!(failing.await, Err(CallError::Expired));
    normal(&pool, 0, 0, Deed::Sleep(20));
    settle().await;
    let (late, early) = tokio::join!(
        pool.call_with((0, 2, Deed::Return), Envelope::new().deadline(Duration::from_millis(19))),
        pool.call_with((0, 3, Deed::Return), Envelope::new().deadline(Duration::from_millis(21))),
    );
    assert_eq!((late, early), (Err(CallError::Expired), Ok(3)));
    assert_eq!(scribe.order(), [1, 0, 3]);
    let expired = DeadLetterReason::Expired;
    assert_eq!(*dead.lock().unwrap(), [(1, expired, 1), (2, expired, 0)]);
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.waiting == 0, "{stats:?}");
}

/// Sends so many messages at once and a millisecond later, after the worker has begun to sleep for a second.
async fn queue_behind_a_sleeper(pool: &Pool<Scribe>) -> Instant {
    normal(pool, 0, 0, Deed::Sleep(1_000));
    settle().await;
    let sent = Instant::now();
    normal(pool, 1, 1, Deed::Return);
    pool.try_send_with((2, 2, Deed::Return), Envelope::new().trace("t")).unwrap();
    pool.try_send_many(&mut [(3, 3, Deed::Return)].into()).unwrap();
    let mine = pool.admin().workers()[0].clone();
    mine.try_send((4, 4, Deed::Return)).unwrap();
    sent
}

#[tokio::test(start_paused = true)]
async fn a02_a_handler_learns_when_its_message_was_queued() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = open(pool, keyed).await;
        // The pool's clock began earlier.
        tokio::time::sleep(3 * SECOND).await;
        let sent = queue_behind_a_sleeper(&pool).await;
        assert_eq!(pool.call((5, 5, Deed::Return)).await, Ok(5));
        settle().await;
        let order = scribe.order();
        let queued = scribe.0.lock().unwrap().queued.clone();
        let waited = SECOND - Duration::from_millis(1);
        for number in 1..=4 {
            let place = order.iter().position(|n| *n == number).unwrap();
            let (at, ago) = queued[place];
            assert_eq!((at, ago), (sent, waited), "{number} of {order:?}, keyed: {keyed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_further_attempt_and_a_change_of_workers_leave_the_time_as_it_was() {
    let (pool, scribe) = scribes(1);
    let pool = pool.spawn().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let sent = Instant::now();
    normal(&pool, 0, 0, Deed::FailTwice);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(scribe.order(), [0, 0, 0]);
    let queued = std::mem::take(&mut scribe.0.lock().unwrap().queued);
    assert!(queued.iter().all(|(at, ago)| *at == sent && sent + *ago <= Instant::now()));
    assert!(queued[2].1 > 2 * Duration::from_millis(50), "{queued:?}");

    let worker = pool.admin().workers()[0].clone();
    pool.admin().add(1).unwrap().done(SECOND).await;
    worker.try_send((0, 1, Deed::Sleep(1_000))).unwrap();
    settle().await;
    let sent = Instant::now();
    worker.try_send((0, 2, Deed::Return)).unwrap();
    let gone = pool.admin().remove_worker(worker.slot()).unwrap();
    gone.done(10 * SECOND).await;
    finish(&pool).await;
    assert_eq!(scribe.0.lock().unwrap().queued[1].0, sent, "it went to the other");
}

/// Nobody until there are two.
struct NeedsTwo;

impl Policy<Note> for NeedsTwo {
    fn choose(&self, _: &Note, _: &About<'_>, crew: &Crew<'_>) -> Choice {
        if crew.len() < 2 { Choice::Hold } else { Choice::At(1) }
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_message_that_a_policy_has_held_back_was_queued_when_it_was_accepted() {
    let (pool, scribe) = scribes(1);
    let pool = pool.dispatch(NeedsTwo).spawn().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let sent = Instant::now();
    normal(&pool, 0, 1, Deed::Return);
    tokio::time::sleep(5 * SECOND).await;
    pool.admin().add(1).unwrap().done(SECOND).await;
    finish(&pool).await;
    assert_eq!(scribe.0.lock().unwrap().queued, [(sent, 5 * SECOND)]);
}

/// Hands each delivery on.
struct Clerk(Address<Note, u32, ()>);

impl Actor for Clerk {
    type Message = Note;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self>) -> Result<u32, ()> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Note, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        if delivery.attempt() == 1 {
            return Err(());
        }
        let before = delivery.queued_at();
        let closed = Pool::new(|_| Scribe::default()).workers(0).spawn().await.unwrap();
        assert!(delivery.forward(&closed).await.is_err());
        assert_eq!(delivery.queued_at(), before, "it was not forwarded");
        delivery.forward(&self.0).await.map_err(drop)?;
        Ok(Answer::Deferred)
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a07_a_forwarded_message_was_queued_when_the_other_pool_accepted_it() {
    let (pool, scribe) = scribes(1);
    let last = pool.spawn().await.unwrap();
    let to = last.address();
    let first = Pool::new(move |_| Clerk(to.clone())).workers(1);
    let first = first.retry(3, Backoff::new(SECOND, SECOND)).seed(1).spawn().await.unwrap();
    let sent = Instant::now();
    first.send((0, 1, Deed::Return)).await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    let (at, ago) = scribe.0.lock().unwrap().queued[0];
    assert!(at > sent && ago.is_zero(), "{:?}, {ago:?}", at - sent);
}

#[tokio::test(start_paused = true)]
async fn a05_a_send_that_waits_no_longer_gives_its_message_back() {
    let (pool, scribe) = scribes(1);
    let pool = pool.capacity(1).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::Sleep(1_000));
    settle().await;
    normal(&pool, 0, 1, Deed::Return);
    let begun = tokio::time::Instant::now();
    let late = pool.send_timeout((0, 2, Deed::Return), Duration::from_millis(100)).await;
    assert!(matches!(late, Err(SendError::Full((0, 2, Deed::Return)))));
    let envelope = Envelope::urgent().timeout(Duration::from_millis(100)).trace("t");
    let late = pool.send_with((0, 3, Deed::Return), envelope).await;
    assert_eq!(late.unwrap_err().into_message(), Some((0, 3, Deed::Return)));
    let at_once = pool.send_timeout((0, 4, Deed::Return), Duration::ZERO).await;
    assert_eq!(at_once.unwrap_err().without_message(), NotAccepted::Full);
    assert_eq!(begun.elapsed(), Duration::from_millis(200));
    assert_eq!((pool.stats().accepted, pool.stats().rejected), (2, 3));
    // In time, both.
    pool.send_timeout((0, 5, Deed::Return), Duration::from_secs(10)).await.unwrap();
    let patient = Envelope::new().timeout(Duration::from_secs(10));
    pool.send_with((0, 6, Deed::Return), patient).await.unwrap();
    finish(&pool).await;
    assert_eq!(scribe.order(), [0, 1, 5, 6]);
    let stopped = pool.send_timeout((0, 7, Deed::Return), SECOND).await;
    assert!(matches!(stopped, Err(SendError::Stopped((0, 7, Deed::Return)))));
}

#[tokio::test(start_paused = true)]
async fn a05_a_wait_that_is_cancelled_has_enqueued_nothing_and_passes_its_turn_on() {
    let (pool, scribe) = scribes(1);
    let pool = pool.capacity(1).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::Sleep(100));
    settle().await;
    normal(&pool, 0, 1, Deed::Return);
    {
        let first = pool.send_with((0, 2, Deed::Return), Envelope::urgent());
        let second = pool.call_with((0, 3, Deed::Return), Envelope::new());
        let both = async { tokio::join!(first, second) };
        assert!(tokio::time::timeout(Duration::from_millis(10), both).await.is_err());
    }
    let timed_out = pool.call_timeout((0, 4, Deed::Return), Duration::from_millis(10)).await;
    assert_eq!(timed_out, Err(CallError::TimedOut));
    pool.send((0, 5, Deed::Return)).await.unwrap();
    finish(&pool).await;
    assert_eq!(scribe.order(), [0, 1, 5]);
}

#[test]
fn a05_errors_need_no_debug_of_the_message_and_convert_without_it() {
    struct Opaque;
    type Made = fn(Opaque) -> SendError<Opaque>;
    let all: [(Made, NotAccepted); 4] = [
        (SendError::Full, NotAccepted::Full),
        (SendError::Refused, NotAccepted::Refused),
        (SendError::Stopped, NotAccepted::Stopped),
        (SendError::NoWorkers, NotAccepted::NoWorkers),
    ];
    for (make, why) in all {
        let error = make(Opaque);
        assert_eq!((error.without_message(), error.to_string()), (why, why.to_string()));
        assert_eq!(format!("{error:?}"), format!("SendError::{why:?}(..)"));
        let error: TrySendError<Opaque> = error.into();
        assert_eq!(error.without_message(), why);
        assert!(error.into_message().is_some());
    }
    assert_eq!(SendError::<Opaque>::Dropped.without_message(), NotAccepted::Dropped);
    assert!(TrySendError::<Opaque>::Dropped.into_message().is_none());
}
