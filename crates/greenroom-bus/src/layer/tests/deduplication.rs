//! Deduplication (D07).

use super::*;
use crate::settlement::{Ack, Outcome, Refusal, Settle, Settled, Watch};

struct Nobody;

impl Settle for Nobody {
    fn settled(&self, _how: Settled) {}
}

/// An event as the engine delivers it: with a settlement.
fn delivered(id: &str) -> (Event, Ack) {
    let ack = Ack::new(Nobody);
    (event(id).with_local(ack.watch()), ack)
}

fn counting() -> (Deduplication, Log, Box<dyn Handler>) {
    let (deduplication, log) = (Deduplication::within(ms(1_000)).remember(3), Log::default());
    let handled = log.clone();
    let inner = handler(move |event| {
        handled.lock().unwrap().push(event.id().to_owned());
        async move { Ok(Outputs::Same) }
    });
    let handler = Layers::new().layer(deduplication.clone()).around(inner).build(0).unwrap();
    (deduplication, log, handler)
}

#[tokio::test(start_paused = true)]
async fn d07_an_event_that_was_acknowledged_is_not_handled_again_within_the_window() {
    let (deduplication, log, mut handler) = counting();
    let (first, ack) = delivered("a");
    assert!(matches!(make(&mut handler, &first).await, Ok(Outputs::Same)));
    ack.confirm();
    tokio::time::advance(ms(999)).await;
    let (again, _ack) = delivered("a");
    assert!(matches!(make(&mut handler, &again).await, Ok(Outputs::None)));
    assert_eq!((logged(&log), deduplication.skipped()), (vec!["a".to_owned()], 1));
    tokio::time::advance(ms(1)).await;
    make(&mut handler, &delivered("a").0).await.unwrap();
    assert_eq!(logged(&log), ["a"], "the window has passed it");
}

#[tokio::test(start_paused = true)]
async fn d07_an_event_that_was_refused_after_its_handler_succeeded_is_handled_again() {
    let (deduplication, log, mut handler) = counting();
    let (first, ack) = delivered("a");
    make(&mut handler, &first).await.unwrap();
    ack.refuse(Refusal::NotStored);
    let (again, ack) = delivered("a");
    assert!(matches!(make(&mut handler, &again).await, Ok(Outputs::Same)));
    drop(ack);
    make(&mut handler, &delivered("a").0).await.unwrap();
    assert_eq!((logged(&log).len(), deduplication.skipped()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn d07_the_second_waits_unstarted_while_the_first_is_not_settled() {
    let (_, log, mut handler) = counting();
    let (first, ack) = delivered("a");
    make(&mut handler, &first).await.unwrap();
    let (second, second_ack) = delivered("a");
    for _ in 0..2 {
        assert_eq!(kind(make(&mut handler, &second).await), Some(FailureKind::Released));
    }
    make(&mut handler, &first).await.expect("a retry is no duplicate of itself");
    ack.confirm();
    assert!(matches!(make(&mut handler, &second).await, Ok(Outputs::None)));
    second_ack.confirm();
    assert_eq!(logged(&log), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn d07_the_second_is_settled_as_the_first_is_of_which_something_came_back_in() {
    for how in [Settled::Acknowledged(Outcome::Handled), Settled::Refused(Refusal::NotStored)] {
        let (deduplication, log, mut handler) = counting();
        let (first, ack) = delivered("a");
        make(&mut handler, &first).await.unwrap();
        ack.child_sent_back().confirm();
        let (second, second_ack) = delivered("a");
        let (tell, told) = std::sync::mpsc::channel();
        assert!(second.local::<Watch>().unwrap().when_settled(move |how| tell.send(how).unwrap()));
        assert!(matches!(make(&mut handler, &second).await, Ok(Outputs::None)));
        second_ack.confirm();
        assert!(told.try_recv().is_err() && deduplication.skipped() == 0);
        match how {
            Settled::Acknowledged(_) => ack.confirm(),
            Settled::Refused(why) => ack.refuse(why),
        }
        assert_eq!((told.try_recv(), logged(&log)), (Ok(how), vec!["a".to_owned()]));
        assert_eq!(deduplication.skipped(), u64::from(how.is_acknowledged()));
    }
}

#[tokio::test(start_paused = true)]
async fn d07_the_same_id_of_another_source_is_another_event() {
    let (_, log, mut handler) = counting();
    for source in ["/one", "/two"] {
        let ack = Ack::new(Nobody);
        let event = Event::builder("a", source, "t").build().unwrap().with_local(ack.watch());
        make(&mut handler, &event).await.unwrap();
        ack.confirm();
    }
    assert_eq!(logged(&log).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d07_of_too_many_the_oldest_is_forgotten() {
    let (deduplication, log, mut handler) = counting();
    for id in ["a", "b", "c", "d", "a", "d"] {
        let (event, ack) = delivered(id);
        make(&mut handler, &event).await.unwrap();
        ack.confirm();
    }
    assert_eq!(logged(&log), ["a", "b", "c", "d", "a"]);
    assert_eq!(deduplication.skipped(), 1);
    assert_eq!(deduplication.remembered(), 3);
}

#[tokio::test(start_paused = true)]
async fn d07_without_an_engine_an_attempt_that_succeeds_counts_as_settled() {
    let deduplication = Deduplication::within(ms(1_000));
    let layers = Layers::new().layer(deduplication.clone());
    let mut handler = layers.around(obedient()).build(0).unwrap();
    make(&mut handler, &order("a", "retry")).await.unwrap_err();
    assert!(matches!(make(&mut handler, &event("a")).await, Ok(Outputs::Same)));
    assert!(matches!(make(&mut handler, &event("a")).await, Ok(Outputs::None)));
}
