use std::{cell::RefCell, pin::Pin, time::Duration};

use super::*;

type Boxed = Pin<Box<dyn Future<Output = Result<&'static str, &'static str>>>>;

const AFTER: Duration = Duration::from_millis(50);

/// An attempt that answers after this many milliseconds.
fn answers(ms: u64, answer: Result<&'static str, &'static str>) -> Boxed {
    Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        answer
    })
}

/// The result, its time in milliseconds, and which attempts' tokens were cancelled; `None` for an
/// attempt that was not sent.
async fn race(
    first: Boxed,
    second: Option<Boxed>,
) -> (Result<&'static str, &'static str>, u64, Vec<bool>) {
    let tokens = RefCell::new(Vec::new());
    let note = |token| tokens.borrow_mut().push(token);
    let start = tokio::time::Instant::now();
    let first = |token| {
        note(token);
        first
    };
    let second = |token| {
        note(token);
        second
    };
    let answer = hedge(AFTER, first, second).await;
    let cancelled = tokens.borrow().iter().map(CancellationToken::is_cancelled).collect();
    (answer, start.elapsed().as_millis() as u64, cancelled)
}

#[tokio::test(start_paused = true)]
async fn p12_a_quick_answer_is_never_hedged() {
    let never = || Some(answers(0, Err("must not be sent")));
    assert_eq!(race(answers(40, Ok("1")), never()).await, (Ok("1"), 40, vec![false]));
    assert_eq!(race(answers(40, Err("1")), never()).await, (Err("1"), 40, vec![false]));
}

#[tokio::test(start_paused = true)]
async fn p12_the_second_attempt_goes_out_after_the_delay_and_the_losers_token_is_cancelled() {
    let slow = || answers(500, Ok("1"));
    let (answer, ms, cancelled) = race(slow(), Some(answers(10, Ok("2")))).await;
    assert_eq!((answer, ms, cancelled), (Ok("2"), 60, vec![true, false]));
    let (answer, ms, cancelled) = race(slow(), Some(answers(1_000, Ok("2")))).await;
    assert_eq!((answer, ms, cancelled), (Ok("1"), 500, vec![false, true]));
}

#[tokio::test(start_paused = true)]
async fn p12_an_attempt_that_fails_leaves_it_to_the_other() {
    let fails = |ms, error| answers(ms, Err(error));
    let late = || Some(answers(100, Ok("2")));
    assert_eq!(race(fails(60, "1"), late()).await, (Ok("2"), 150, vec![false, false]));
    let (answer, ms, _) = race(answers(300, Ok("1")), Some(fails(10, "2"))).await;
    assert_eq!((answer, ms), (Ok("1"), 300));
    assert_eq!(race(fails(70, "1"), Some(fails(40, "2"))).await.0, Err("1"));
    assert_eq!(race(fails(90, "1"), Some(fails(10, "2"))).await.0, Err("2"));
}

#[tokio::test(start_paused = true)]
async fn p12_without_a_second_attempt_the_first_is_waited_for() {
    let (answer, ms, cancelled) = race(answers(500, Ok("1")), None).await;
    assert_eq!((answer, ms, cancelled[0]), (Ok("1"), 500, false));
}

#[tokio::test(start_paused = true)]
async fn p12_dropping_a_hedged_call_cancels_both_attempts() {
    let tokens = RefCell::new(Vec::new());
    let attempt = |token: CancellationToken| {
        tokens.borrow_mut().push(token);
        answers(1_000, Ok("late"))
    };
    let call = hedge(AFTER, attempt, |token| Some(attempt(token)));
    assert!(tokio::time::timeout(2 * AFTER, call).await.is_err());
    let cancelled: Vec<_> = tokens.borrow().iter().map(CancellationToken::is_cancelled).collect();
    assert_eq!(cancelled, [true, true]);
}
