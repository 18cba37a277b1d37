//! Dead letters as a queue: bounded, listed, inspected, replayed, removed (X03).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use greenroom::{
    DeadLetter, DeadLetterReason, DeadLetters, NotAccepted, Pool, Stop,
    dead_letters::{NoLetter, NotReplayed},
};

use crate::events::desk::{Desk, Page, SECOND, settle};

/// One worker, in the order of keys, with this capacity.
async fn open(
    desk: &Desk,
    capacity: usize,
    letters: &DeadLetters<Page, &'static str>,
) -> Pool<Desk> {
    let (desk, letters) = (desk.clone(), letters.clone());
    let builder = Pool::new(move |_| desk.clone()).workers(1).capacity(capacity);
    let builder = builder.on_dead_letter(move |letter| drop(letters.push(letter)));
    builder.ordered_by(|page: &Page| page.0).spawn().await.unwrap()
}

fn letter<M>(message: M) -> DeadLetter<M, &'static str> {
    let reason = DeadLetterReason::Failed;
    let (message, error) = (Some(message), Some("failed"));
    DeadLetter { message, reason, error, panic: None, attempts: 1, age: None }
}

fn letters_of(pages: &[Page]) -> DeadLetters<Page, &'static str> {
    let letters = DeadLetters::default();
    for page in pages {
        assert!(letters.push(letter(*page)).dropped.is_none());
    }
    letters
}

fn ids<M, E>(letters: &DeadLetters<M, E>) -> Vec<u64> {
    letters.list(None, usize::MAX).iter().map(|info| info.id).collect()
}

#[tokio::test(start_paused = true)]
async fn x03_at_the_bound_the_oldest_is_given_back_and_counted() {
    let letters = DeadLetters::new(2);
    for number in 0..5 {
        let kept = letters.push(letter(number));
        let oldest = kept.dropped.and_then(|letter| letter.message);
        assert_eq!(oldest, (number >= 2).then(|| number - 2));
    }
    assert_eq!((letters.len(), letters.bound(), letters.dropped()), (2, 2, 3));
    assert_eq!(ids(&letters), [4, 5]);
    assert_eq!(DeadLetters::<u8, u8>::default().bound(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn x03_a_bound_of_nothing_keeps_nothing_and_counts() {
    let letters = DeadLetters::new(0);
    let kept = letters.push(letter(7));
    assert_eq!((kept.id, kept.dropped.unwrap().message), (None, Some(7)));
    assert_eq!((letters.len(), letters.dropped()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn x03_a_pool_s_letters_are_listed_with_what_is_known_of_them() {
    let (desk, letters) = (Desk::default(), DeadLetters::default());
    let pool = open(&desk, 10, &letters).await;
    let start = tokio::time::Instant::now();
    pool.send((1, "slow, and fails")).await.unwrap();
    pool.send((2, "panics")).await.unwrap();
    settle().await;
    let list = letters.list(None, 10);
    assert_eq!(list.len(), 2);
    assert_eq!((list[0].reason, list[0].attempts), (DeadLetterReason::Failed, 1));
    assert_eq!((list[0].panic.as_deref(), list[0].has_message), (None, true));
    assert_eq!(list[0].since, start + SECOND);
    assert_eq!(list[1].reason, DeadLetterReason::Panicked);
    assert_eq!(list[1].panic.as_deref(), Some("on purpose"));
    let old = letters.push(DeadLetter { age: Some(SECOND), ..letter((3, "")) }).id.unwrap();
    assert_eq!(letters.list(Some(old - 1), 1)[0].age, Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn x03_pages_go_on_where_the_last_one_ended_whatever_was_removed() {
    let letters = letters_of(&[(0, ""); 7]);
    let first = letters.list(None, 3);
    assert_eq!(first.iter().map(|info| info.id).collect::<Vec<_>>(), [1, 2, 3]);
    letters.remove(3).unwrap();
    letters.remove(4).unwrap();
    let second = letters.list(Some(3), 2);
    assert_eq!(second.iter().map(|info| info.id).collect::<Vec<_>>(), [5, 6]);
    assert!(letters.list(Some(u64::MAX), 9).is_empty());
}

#[tokio::test(start_paused = true)]
async fn x03_a_letter_is_removed_once() {
    let letters = letters_of(&[(1, "a"), (2, "b"), (3, "c")]);
    assert_eq!(letters.remove(2).unwrap().message, Some((2, "b")));
    assert_eq!(letters.remove(2).unwrap_err(), NoLetter::Unknown);
    let rest = letters.remove_all();
    assert_eq!(
        rest.iter().filter_map(|letter| letter.message).collect::<Vec<_>>(),
        [(1, "a"), (3, "c")]
    );
    assert_eq!((letters.len(), letters.dropped()), (0, 0), "what is removed is not lost");
}

#[tokio::test(start_paused = true)]
async fn x03_who_looks_at_a_letter_may_use_the_queue() {
    let letters = letters_of(&[(1, "a"), (2, "b")]);
    let seen = letters.inspect(1, |letter| {
        assert_eq!(letters.inspect(1, |_| ()), Err(NoLetter::InUse));
        assert_eq!(letters.remove(1).unwrap_err(), NoLetter::InUse);
        assert_eq!(letters.len(), 2, "it keeps its place");
        assert_eq!(letters.remove_all().len(), 1, "and is left to who looks at it");
        letter.message
    });
    assert_eq!(seen, Ok(Some((1, "a"))));
    assert_eq!(ids(&letters), [1]);
    assert_eq!(letters.inspect(2, |_| ()), Err(NoLetter::Unknown));
}

#[tokio::test(start_paused = true)]
async fn x03_a_look_that_panics_leaves_the_letter_in_its_place() {
    let letters = letters_of(&[(1, "a"), (2, "b")]);
    let look = || letters.inspect(1, |_| panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(look)).is_err());
    assert_eq!(ids(&letters), [1, 2]);
    assert_eq!(letters.inspect(1, |letter| letter.message), Ok(Some((1, "a"))));
}

#[tokio::test(start_paused = true)]
async fn x03_a_letter_that_loses_its_place_while_it_is_looked_at_is_dropped_and_counted() {
    let letters = DeadLetters::new(1);
    letters.push(letter(Arc::new(1))).id.unwrap();
    let message = letters.inspect(1, |old| {
        let kept = letters.push(letter(Arc::new(2)));
        assert!(kept.dropped.is_none());
        assert_eq!((letters.len(), letters.dropped()), (1, 0));
        Arc::downgrade(old.message.as_ref().unwrap())
    });
    assert!(message.unwrap().upgrade().is_none());
    assert_eq!((ids(&letters), letters.dropped()), (vec![2], 1));
}

#[tokio::test(start_paused = true)]
async fn x03_a_replay_goes_to_the_end_of_its_key_s_line() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "again")]));
    let pool = open(&desk, 10, &letters).await;
    pool.send((1, "slow")).await.unwrap();
    pool.send((1, "second")).await.unwrap();
    letters.replay(1, &pool).unwrap();
    pool.send((1, "last")).await.unwrap();
    assert_eq!((letters.len(), letters.dropped()), (0, 0));
    settle().await;
    assert_eq!(desk.handled(), [(1, "slow"), (1, "second"), (1, "again"), (1, "last")]);
    let stats = pool.stats();
    assert_eq!((stats.accepted, stats.handled), (4, 4), "a replay is a new acceptance");
}

#[tokio::test(start_paused = true)]
async fn x03_what_is_not_accepted_stays_in_its_place_with_its_message() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a"), (2, "b")]));
    let pool = open(&desk, 1, &letters).await;
    pool.send((3, "slow")).await.unwrap();
    tokio::task::yield_now().await;
    pool.send((3, "queued")).await.unwrap();
    assert_eq!(letters.replay(1, &pool), Err(NotReplayed::Refused(NotAccepted::Full)));
    pool.stop(Stop::within(SECOND * 60)).await;
    assert_eq!(letters.replay(1, &pool), Err(NotReplayed::Refused(NotAccepted::Stopped)));
    assert_eq!(letters.replay(9, &pool), Err(NotReplayed::NoLetter(NoLetter::Unknown)));
    assert_eq!(ids(&letters), [1, 2]);
    assert_eq!(letters.inspect(1, |letter| letter.message), Ok(Some((1, "a"))));
}

#[tokio::test(start_paused = true)]
async fn x03_a_letter_without_a_message_is_not_replayed_and_stays() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a")]));
    let pool = open(&desk, 10, &letters).await;
    let empty = DeadLetter { message: None, ..letter((0, "")) };
    let id = letters.push(empty).id.unwrap();
    assert!(!letters.list(Some(1), 1)[0].has_message);
    assert_eq!(letters.replay(id, &pool), Err(NotReplayed::NoMessage));
    let all = letters.replay_all(&pool);
    assert_eq!((all.replayed, all.without_message), (1, 1));
    assert_eq!(ids(&letters), [id]);
}

#[tokio::test(start_paused = true)]
async fn x03_those_of_one_key_are_replayed_and_others_stay() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a"), (2, "b"), (1, "c")]));
    let pool = open(&desk, 10, &letters).await;
    let replayed = letters.replay_where(|_, page| page.is_some_and(|page| page.0 == 1), &pool);
    assert_eq!(replayed.replayed, 2);
    assert_eq!(ids(&letters), [2]);
    settle().await;
    assert_eq!(desk.handled(), [(1, "a"), (1, "c")]);
}

#[tokio::test(start_paused = true)]
async fn x03_after_a_refusal_no_letter_overtakes_an_older_one() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]));
    let pool = open(&desk, 2, &letters).await;
    let replayed = letters.replay_all(&pool);
    assert_eq!(replayed.replayed, 2);
    assert_eq!(replayed.refused, [(3, NotAccepted::Full), (4, NotAccepted::Full)]);
    assert_eq!(pool.stats().rejected, 1, "the second was not tried");
    assert_eq!(ids(&letters), [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn x03_letters_that_come_of_a_replay_are_not_replayed_by_it() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a"), (2, "b")]));
    let pool = open(&desk, 10, &letters).await;
    let replayed = letters.replay_where(|_, _| letters.push(letter((3, "c"))).id.is_some(), &pool);
    assert_eq!(replayed.replayed, 2);
    assert_eq!(ids(&letters), [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn x03_a_predicate_or_key_function_that_panics_loses_no_letter() {
    let (desk, letters) = (Desk::default(), letters_of(&[(1, "a"), (2, "b"), (3, "c")]));
    let kept = desk.clone();
    let pool = Pool::new(move |_| kept.clone()).workers(1);
    let pool = pool.ordered_by(|page: &Page| 10 / (page.0 - 2)).spawn().await.unwrap();
    let second = |info: &greenroom::dead_letters::LetterInfo, _: Option<&Page>| {
        assert!(info.id != 2, "on purpose");
        info.id == 3
    };
    let predicate = || letters.replay_where(second, &pool);
    assert!(catch_unwind(AssertUnwindSafe(predicate)).is_err());
    assert_eq!(ids(&letters), [1, 2, 3]);
    let key = || letters.replay(2, &pool);
    assert!(catch_unwind(AssertUnwindSafe(key)).is_err());
    assert_eq!(letters.inspect(2, |letter| letter.message), Ok(Some((2, "b"))));
    assert_eq!(pool.stats().accepted, 0);
}

/// Counts itself, and panics when it is dropped.
struct Explosive(Arc<AtomicUsize>);

impl Drop for Explosive {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(std::thread::panicking(), "on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn x03_messages_that_panic_when_they_are_dropped_go_with_their_queue() {
    let (letters, gone) = (DeadLetters::default(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..3 {
        assert!(letters.push(letter(Explosive(gone.clone()))).dropped.is_none());
    }
    drop(letters.clone());
    assert_eq!(gone.load(Ordering::SeqCst), 0, "a clone is the same queue");
    drop(letters);
    assert_eq!(gone.load(Ordering::SeqCst), 3);
}

#[test]
fn x03_messages_need_not_be_shared_between_threads() {
    fn send_and_sync<T: Send + Sync>(_: &T) {}
    /// `Send`, and not `Sync`.
    type Message = std::cell::Cell<u8>;
    send_and_sync(&DeadLetters::<Message, Message>::default());
}
