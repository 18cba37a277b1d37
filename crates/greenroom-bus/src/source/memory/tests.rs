use std::{
    pin::Pin,
    task::{Context, Waker},
};

use super::*;
use crate::settlement::Outcome;

fn is_pending<F: Future + ?Sized>(future: &mut Pin<&mut F>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn event(id: u32) -> Event {
    Event::builder(id.to_string(), "/test", "made").build().unwrap()
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::id).collect()
}

async fn pulled(source: &mut MemorySource) -> Vec<Taken> {
    let mut taken = Vec::new();
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::More);
    taken
}

#[tokio::test]
async fn b04_events_come_in_order_with_rising_positions_and_end_with_the_last_input() {
    let (input, mut source) = channel("orders", 4);
    assert_eq!(source.describe(), "memory:orders");
    let other = input.clone();
    input.send(event(1)).await.unwrap();
    other.send(event(2)).await.unwrap();
    let taken = pulled(&mut source).await;
    assert_eq!(taken.iter().map(|taken| taken.position).collect::<Vec<_>>(), [1, 2]);
    assert!(source.receipts().is_none(), "nobody wants to hear");
    drop(input);
    other.send(event(3)).await.unwrap();
    drop(other);
    assert_eq!(pulled(&mut source).await[0].position, 3);
    assert_eq!(source.pull(&mut Vec::new()).await.unwrap(), Pull::End);
}

#[tokio::test]
async fn b04_a_full_queue_gives_the_event_back_or_has_its_sender_wait() {
    let (input, mut source) = channel("orders", 0);
    input.try_send(event(1)).unwrap();
    let full = input.try_send(event(2)).unwrap_err();
    assert!(matches!(full, TrySendError::Full(_)) && full.into_event().id() == "2");
    let mut waits = std::pin::pin!(input.send(event(3)));
    assert!(is_pending(&mut waits));
    assert_eq!(pulled(&mut source).await.len(), 1);
    waits.await.unwrap();
    assert_eq!(pulled(&mut source).await[0].event.as_ref().unwrap().id(), "3");
}

#[tokio::test]
async fn b04_who_delivers_hears_how_the_event_was_settled() {
    let (input, mut source) = channel("orders", 4);
    let (mut first, mut second) =
        (std::pin::pin!(input.deliver(event(1))), std::pin::pin!(input.deliver(event(2))));
    assert!(is_pending(&mut first));
    assert!(is_pending(&mut second));
    assert_eq!(pulled(&mut source).await.len(), 2);
    let receipts = source.receipts().unwrap();
    let refused = Settled::Refused(Refusal::Dropped);
    receipts.settled(2, refused);
    assert!(is_pending(&mut first));
    assert_eq!(second.await.unwrap(), refused);
    receipts.settled(1, Settled::Acknowledged(Outcome::Handled));
    assert_eq!(first.await.unwrap(), Settled::Acknowledged(Outcome::Handled));
}

#[tokio::test]
async fn b04_what_the_engine_has_not_taken_comes_back() {
    let (input, source) = channel("orders", 4);
    input.send(event(1)).await.unwrap();
    let mut delivered = std::pin::pin!(input.deliver(event(2)));
    assert!(is_pending(&mut delivered));
    input.send(event(3)).await.unwrap();
    assert!(input.take_back().is_empty() && !input.is_closed());
    drop(source);
    assert_eq!(delivered.await.unwrap_err().0.id(), "2");
    assert_eq!(ids(&input.take_back()), ["1", "3"]);
    assert!(input.take_back().is_empty(), "once");
    assert_eq!(input.send(event(4)).await.unwrap_err().0.id(), "4");
    assert!(matches!(input.try_send(event(5)), Err(TrySendError::Closed(_))));
    assert!(input.is_closed());
}

#[tokio::test]
async fn b04_a_sender_that_was_given_room_before_the_end_and_comes_after_it_has_its_event_back() {
    let (input, mut source) = channel("orders", 1);
    input.send(event(1)).await.unwrap();
    let mut waits = std::pin::pin!(input.send(event(2)));
    assert!(is_pending(&mut waits));
    // Gives room to who waits, who is not polled before the end.
    assert_eq!(pulled(&mut source).await.len(), 1);
    drop(source);
    assert_eq!(waits.await.unwrap_err().0.id(), "2");
    assert!(input.take_back().is_empty());
}

#[tokio::test]
async fn b04_a_pull_that_is_dropped_loses_nothing() {
    let (input, mut source) = channel("orders", 4);
    let mut into = Vec::new();
    {
        let mut pull = source.pull(&mut into);
        assert!(is_pending(&mut pull.as_mut()));
        input.send(event(1)).await.unwrap();
    }
    assert!(into.is_empty());
    assert_eq!(pulled(&mut source).await.len(), 1);
}
