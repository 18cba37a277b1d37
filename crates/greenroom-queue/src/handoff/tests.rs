use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use tokio::sync::oneshot;

use super::*;
use crate::stamp::Stamp;

/// Numbers in both directions.
struct Numbers;

impl Exchange for Numbers {
    type Message = u8;
    type Response = u8;
    type Port = oneshot::Sender<u8>;
    type Promise = oneshot::Receiver<u8>;

    fn open() -> (Self::Port, Self::Promise) {
        oneshot::channel()
    }

    fn respond(port: Self::Port, response: u8) -> Result<(), u8> {
        port.send(response)
    }
}

type Small = HandoffSlot<Numbers>;

fn now() -> Stamp {
    Stamp::coarse(5)
}

/// Hands this number over, for a caller that nothing wakes.
fn put(handoff_slot: &Small, number: u8) -> bool {
    let mut message = Some(number);
    let taken = handoff_slot.hand(&mut message, Stamp::default(), &mut None);
    assert_eq!(message.is_none(), taken, "it is in one place");
    taken
}

/// Counts its wake-ups.
#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A handed-over message, and the waker of its caller.
fn handed() -> (Small, Arc<Wakes>) {
    let (handoff_slot, wakes) = (Small::new(), Arc::new(Wakes::default()));
    let mut waiter = Some(Waker::from(wakes.clone()));
    assert!(handoff_slot.hand(&mut Some(7), Stamp::default(), &mut waiter));
    assert!(waiter.is_none() && handoff_slot.has_handed());
    (handoff_slot, wakes)
}

fn take_handed(handoff_slot: &Small) -> Option<(u8, Caller<oneshot::Sender<u8>>)> {
    let (mut message, mut stamp) = (None, Stamp::NONE);
    let caller = handoff_slot.take_handed(&mut message, &mut stamp)?;
    Some((message.unwrap(), caller))
}

fn woken(wakes: &Wakes) -> u32 {
    wakes.0.load(Ordering::Relaxed)
}

fn poll(handoff_slot: &Small, wakes: &Arc<Wakes>) -> Poll<HandedOutcomeOf<Numbers>> {
    handoff_slot.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

#[test]
fn who_hands_a_message_over_is_woken_for_the_response() {
    let (handoff_slot, wakes) = handed();
    assert!(!put(&handoff_slot, 1));
    assert!(matches!(take_handed(&handoff_slot), Some((7, Caller::Waits))));
    assert!(!put(&handoff_slot, 1));
    assert!(
        take_handed(&handoff_slot).is_none()
            && !handoff_slot.has_handed()
            && handoff_slot.retract(now).is_none()
    );
    assert!(poll(&handoff_slot, &wakes).is_pending());
    assert_eq!((woken(&wakes), handoff_slot.answer(8), woken(&wakes)), (0, Ok(()), 1));
    let mut waiter = Some(Waker::from(wakes.clone()));
    assert!(!handoff_slot.hand(&mut Some(9), Stamp::default(), &mut waiter), "it is not collected");
    assert!(waiter.is_some());
    assert!(matches!(poll(&handoff_slot, &wakes), Poll::Ready(HandedOutcome::Response(8))));
    assert!(handoff_slot.hand(&mut Some(9), Stamp::default(), &mut waiter));
}

#[test]
fn a_port_is_told_to_who_waits() {
    let (handoff_slot, wakes) = handed();
    assert!(take_handed(&handoff_slot).is_some());
    let port = handoff_slot.port().unwrap();
    assert_eq!(woken(&wakes), 1);
    let Poll::Ready(HandedOutcome::Later(mut promise)) = poll(&handoff_slot, &wakes) else {
        panic!("it is told")
    };
    assert_eq!(port.send(9), Ok(()));
    assert_eq!(promise.try_recv(), Ok(9));
}

#[test]
fn what_is_taken_back_has_a_port_of_which_its_caller_is_told() {
    let (handoff_slot, wakes) = handed();
    assert!(handoff_slot.retract_what_is_left(true, now).1.is_none(), "it was not there before");
    assert!(handoff_slot.retract_what_is_left(false, now).1.is_none(), "nobody else could take it");
    let (0, Some((message, _, port))) = handoff_slot.retract_what_is_left(true, now) else {
        panic!("it was there before")
    };
    assert_eq!((message, woken(&wakes)), (7, 1));
    assert!(take_handed(&handoff_slot).is_none() && handoff_slot.retract(now).is_none());
    let Poll::Ready(HandedOutcome::Later(mut promise)) = poll(&handoff_slot, &wakes) else {
        panic!("it is told")
    };
    assert_eq!(port.send(9), Ok(()));
    assert_eq!(promise.try_recv(), Ok(9));
}

#[test]
fn who_gives_up_leaves_a_message_that_is_abandoned_or_a_response_that_is_unwanted() {
    for retracted in [false, true] {
        let (handoff_slot, wakes) = handed();
        handoff_slot.give_up();
        assert!(handoff_slot.has_handed() && !put(&handoff_slot, 1));
        let port = match retracted {
            true => handoff_slot.retract(now).unwrap().2,
            false => match take_handed(&handoff_slot) {
                Some((7, Caller::Gone(port))) => port,
                _ => panic!("nobody waits for it"),
            },
        };
        assert!(port.is_closed() && put(&handoff_slot, 1));
        assert_eq!(woken(&wakes), 0);
    }
    let (handoff_slot, _) = handed();
    assert!(take_handed(&handoff_slot).is_some());
    handoff_slot.give_up();
    assert!(!put(&handoff_slot, 1), "it is in hand");
    assert_eq!(handoff_slot.answer(8), Err(8));
    assert!(put(&handoff_slot, 1));
    // Its port has no listener.
    let (handoff_slot, _) = handed();
    assert!(take_handed(&handoff_slot).is_some());
    handoff_slot.give_up();
    assert!(handoff_slot.port().is_some_and(|port| port.is_closed()));
    assert!(put(&handoff_slot, 1));
    let (handoff_slot, _) = handed();
    assert!(take_handed(&handoff_slot).is_some());
    assert_eq!(handoff_slot.answer(8), Ok(()));
    handoff_slot.give_up();
    assert!(put(&handoff_slot, 1), "the response has gone with who gave up");
}

#[test]
fn who_polls_last_is_woken() {
    let (handoff_slot, first) = handed();
    let last = Arc::new(Wakes::default());
    assert!(poll(&handoff_slot, &last).is_pending());
    assert!(take_handed(&handoff_slot).is_some());
    assert_eq!(handoff_slot.answer(8), Ok(()));
    assert_eq!((woken(&first), woken(&last)), (0, 1));
}

#[test]
fn a_port_that_is_dropped_resolves_the_caller() {
    let (handoff_slot, wakes) = handed();
    assert!(take_handed(&handoff_slot).is_some());
    drop(handoff_slot.port());
    let Poll::Ready(HandedOutcome::Later(mut promise)) = poll(&handoff_slot, &wakes) else {
        panic!("there is no response")
    };
    assert!(promise.try_recv().is_err());
}
