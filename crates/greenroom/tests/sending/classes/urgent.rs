//! Urgent messages come before normal ones (A03).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use greenroom::{Actor, CallError, Class, Context, Envelope, Pool, Stop, WeakAddress};

use crate::sending::settle::settle;

use super::scribe::{Deed, Note, SECOND, finish, normal, open, scribes, urgent};

#[tokio::test(start_paused = true)]
async fn a03_urgent_comes_before_normal_also_in_the_middle_of_a_batch() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = open(pool, keyed).await;
        for number in 0..4 {
            normal(&pool, number as u8, number, Deed::Return);
        }
        // The worker has the whole batch by now.
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
            // While a key is suspended, other keys continue.
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
async fn a03_urgent_messages_of_a_key_in_hand_count_for_the_turn_of_normal_ones() {
    let (pool, scribe) = scribes(2);
    let pool = open(pool, true).await;
    let urgent = |key, number| {
        pool.try_send_with((key, number, Deed::Sleep(1)), Envelope::urgent()).unwrap();
    };
    // From now on handlers usually wait.
    (0..40).for_each(|number| normal(&pool, number as u8, number, Deed::Sleep(1)));
    tokio::time::sleep(SECOND).await;
    normal(&pool, 101, 1_000, Deed::Sleep(10));
    settle().await;
    // The idle worker finds them behind their key.
    (2_000..2_040).for_each(|number| urgent(101, number));
    settle().await;
    normal(&pool, 102, 1_001, Deed::Sleep(60_000));
    tokio::time::sleep(Duration::from_millis(30)).await;
    let early = scribe.order().len();
    (3_000..3_040).for_each(|number| urgent(103, number));
    normal(&pool, 104, 4_000, Deed::Sleep(1));
    finish(&pool).await;
    let order = scribe.order();
    assert!(order[42..early].iter().all(|number| (2_000..2_040).contains(number)));
    assert!(early > 42 + 10, "some have come from their lane before others came");
    let before = order.iter().take_while(|number| **number != 4_000);
    let urgent = before.filter(|number| (2_000..4_000).contains(*number)).count();
    assert_eq!(urgent, 64);
}

/// Each of the shards that were checked before gave one more.
#[tokio::test(start_paused = true)]
async fn a03_a_normal_message_that_is_due_comes_before_urgent_ones_of_all_shards() {
    for key in 1..=10 {
        // One of the two workers is busy with its message all the time.
        let (pool, scribe) = scribes(2);
        let pool = open(pool, true).await;
        normal(&pool, 201, 2, Deed::Sleep(60_000));
        normal(&pool, 0, 0, Deed::Sleep(1));
        settle().await;
        normal(&pool, key, 1, Deed::Return);
        (0..200).for_each(|key| urgent(&pool, key, 100 + u32::from(key)));
        finish(&pool).await;
        assert_eq!(scribe.order().iter().position(|number| *number == 1), Some(66));
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
    // Key 1 has used up its quota in the middle of these, and waits in its own lane behind key 2.
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
    // A worker that steps aside with a shard's message in hand keeps the few that are left there;
    // other workers continue.
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
    // Either worker may have either message in hand.
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
