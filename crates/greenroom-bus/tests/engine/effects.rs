//! What an attempt may have done although it failed: what bounds how often an event is handled
//! again (D01).

use std::sync::{Arc, Mutex};

use greenroom_bus::{
    engine::{HandlerConfig, Retry},
    handler::{Effect, Failure, FailureKind, HandlerFactory, HandlerResult, Outputs},
};

use crate::engine::support::{Bench, event, handlers::answer, on, source::Script};

/// The attempts that were seen, and the report, where the first three attempts of a handler end
/// like this.
async fn run(fails: impl Fn() -> HandlerResult + Send + Sync + 'static) -> (Vec<u32>, u64) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let factory: Arc<dyn HandlerFactory> = answer(move |_, attempt| {
        let made = {
            let mut noted = noted.lock().unwrap();
            noted.push(attempt);
            noted.len()
        };
        if made <= 3 { fails() } else { Ok(Outputs::Same) }
    });
    let bench = Bench::new().set(|engine| {
        let retry = Some(Retry { attempts: 10, ..Retry::default() });
        let handler = HandlerConfig { retry, ..on(&["t"], factory) };
        engine.input(Box::new(Script::of([event(1, "t", Some("key"))]))).handler("h", handler)
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (1, 0), "{report:?}");
    (seen.lock().unwrap().clone(), report.repeated_at_most)
}

#[tokio::test(start_paused = true)]
async fn attempts_of_which_nobody_knows_what_they_did_bound_the_repeats() {
    let lost = || Err(Failure::retry("lost").with_effect(Effect::Unknown));
    assert_eq!(run(lost).await, (vec![1, 2, 3, 4], 3));
    let late = || Err(Failure::new(FailureKind::Timeout, "late"));
    assert_eq!(run(late).await, (vec![1, 2, 3, 4], 3));
    let said = || Err(Failure::retry("503"));
    assert_eq!(run(said).await, (vec![1, 2, 3, 4], 0));
    let unsent = || Err(Failure::retry("refused").with_effect(Effect::None));
    assert_eq!(run(unsent).await, (vec![1, 2, 3, 4], 0));
}

#[tokio::test(start_paused = true)]
async fn a_pause_before_anybody_had_the_event_does_not_count_its_attempt() {
    let absent = || Err(Failure::new(FailureKind::Pause, "no program").with_effect(Effect::None));
    assert_eq!(run(absent).await, (vec![1, 1, 1, 1], 0));
    let refused = || Err(Failure::new(FailureKind::Pause, "401"));
    assert_eq!(run(refused).await, (vec![1, 2, 3, 4], 0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_may_have_had_an_effect() {
    let first = Mutex::new(true);
    let panics = move || {
        let is_first = std::mem::replace(&mut *first.lock().unwrap(), false);
        assert!(!is_first, "on purpose");
        Err(Failure::retry("503"))
    };
    assert_eq!(run(panics).await.1, 1);
}
