//! Permits that borrow nothing (P29).

use std::time::Duration;

use greenroom::{Actor, Context, NotAccepted, Pool, SendError, Stop};
use tokio::sync::mpsc;

/// Passes on its messages.
struct Relay(mpsc::UnboundedSender<u32>);

impl Actor for Relay {
    type Message = u32;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<u32, ()> {
        self.0.send(number).map_err(|_| ())?;
        Ok(number)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The receiver ends when the pool, its workers and its factory have gone.
async fn relay(capacity: usize) -> (Pool<Relay>, mpsc::UnboundedReceiver<u32>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pool = Pool::new(move |_| Relay(sender.clone())).workers(1).capacity(capacity);
    (pool.spawn().await.unwrap(), receiver)
}

#[tokio::test]
async fn p29_a_permit_is_room_until_it_is_used_or_dropped() {
    let (pool, mut seen) = relay(1).await;
    let permit = pool.reserve().await.unwrap();
    assert_eq!(pool.try_reserve().unwrap_err(), NotAccepted::Full);
    drop(permit);
    pool.try_reserve().unwrap().send(5).unwrap();
    assert_eq!(seen.recv().await, Some(5));
    assert!(pool.try_reserve().is_ok());
}

#[tokio::test]
async fn p29_a_permit_sends_in_line_with_its_address() {
    let (pool, mut seen) = relay(1_000).await;
    for number in 0..1_000 {
        match number % 3 {
            0 => pool.try_send(number).unwrap(),
            1 => pool.try_reserve().unwrap().send(number).unwrap(),
            _ => drop(tokio::spawn(pool.reserve().await.unwrap().call(number))),
        }
    }
    for number in 0..1_000 {
        assert_eq!(seen.recv().await, Some(number));
    }
}

#[tokio::test]
async fn p29_a_dropped_wait_for_a_permit_has_reserved_nothing() {
    let (pool, _seen) = relay(1).await;
    let held = pool.reserve().await.unwrap();
    let mut waiting = Box::pin(pool.reserve());
    assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
    drop(held);
    drop(waiting);
    assert!(pool.try_reserve().is_ok());
}

#[tokio::test]
async fn p29_a_permit_used_after_the_stop_gives_its_message_back() {
    let (pool, _seen) = relay(2).await;
    let (send, call) = (pool.reserve().await.unwrap(), pool.reserve().await.unwrap());
    pool.stop(Stop::within(SECOND)).await;
    assert_eq!(send.send(3).unwrap_err().into_message(), Some(3));
    assert_eq!(call.call(4).await, Err(SendError::Stopped(4).into()));
    assert_eq!(pool.reserve().await.unwrap_err(), NotAccepted::Stopped);
    assert_eq!(pool.try_reserve().unwrap_err(), NotAccepted::Stopped);
}

#[tokio::test(start_paused = true)]
async fn p29_the_pool_lives_until_its_last_permit_service_and_sink_are_gone() {
    let (pool, mut seen) = relay(1).await;
    let (permit, service, sink) = (pool.reserve().await.unwrap(), pool.service(), pool.sink());
    drop(pool);
    tokio::time::sleep(SECOND).await;
    assert_eq!(permit.call(2).await, Ok(2));
    assert_eq!(seen.recv().await, Some(2));
    drop(service);
    assert!(tokio::time::timeout(SECOND, seen.recv()).await.is_err(), "the sink is left");
    drop(sink);
    assert_eq!(seen.recv().await, None);
}
