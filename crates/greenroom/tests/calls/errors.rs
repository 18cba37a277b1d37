//! The error of a call that ends without a reply, and the message in it (A06).

use std::{error::Error, fmt};

use greenroom::{
    Actor, CallError, Context, Envelope, NotAccepted, Overflow, Pool, SendError, Stop,
    policy::{About, Choice, Crew, Policy},
};

use crate::calls::desk::SECOND;

/// A message that can be neither copied nor printed nor compared.
struct Parcel(u32);

#[derive(Debug, PartialEq)]
struct NoStamp;

impl fmt::Display for NoStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has no stamp")
    }
}

impl Error for NoStamp {}

/// Requires stamps on parcels from 100 on.
struct Post;

impl Actor for Post {
    type Message = Parcel;
    type Reply = u32;
    type Error = NoStamp;

    async fn handle(&mut self, parcel: Parcel, _: &mut Context<Self>) -> Result<u32, NoStamp> {
        match parcel.0 {
            number @ 0..100 => Ok(number),
            100 => panic!("it ticks"),
            _ => Err(NoStamp),
        }
    }
}

struct NoParcels;

impl Policy<Parcel> for NoParcels {
    fn choose(&self, _: &Parcel, _: &About<'_>, _: &Crew<'_>) -> Choice {
        Choice::Refuse
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_error_prints_its_cause_and_has_it_as_its_source() {
    let post = Pool::new(|_| Post).workers(1).spawn().await.unwrap();
    let failed = post.call(Parcel(101)).await.unwrap_err();
    assert_eq!(failed.to_string(), "the handler failed: it has no stamp");
    let source = failed.source().and_then(|source| source.downcast_ref::<NoStamp>());
    assert_eq!(source, Some(&NoStamp));
    let panicked = post.call(Parcel(100)).await.unwrap_err();
    assert_eq!(panicked.to_string(), "the handler panicked: it ticks");
    post.stop(Stop::Now).await;
    let refused: Box<dyn Error> = post.call(Parcel(1)).await.unwrap_err().into();
    assert_eq!(refused.to_string(), NotAccepted::Stopped.to_string());
}

/// The reason, and the number of the returned message.
fn back(called: Result<u32, CallError<NoStamp, Parcel>>) -> (NotAccepted, Option<u32>) {
    match called {
        Err(CallError::NotAccepted(error)) => {
            (error.without_message(), error.into_message().map(|parcel| parcel.0))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_was_not_accepted_gives_its_message_back() {
    let post = || Pool::new(|_| Post).workers(1).capacity(1);
    let full = post().overflow(Overflow::Reject).spawn().await.unwrap();
    let _held = full.reserve().await.unwrap();
    assert_eq!(back(full.call(Parcel(1)).await), (NotAccepted::Full, Some(1)));
    let urgent = full.call_with(Parcel(2), Envelope::urgent()).await;
    assert_eq!(back(urgent), (NotAccepted::Full, Some(2)));

    let waits = post().spawn().await.unwrap();
    let held = waits.reserve().await.unwrap();
    let late = waits.call_timeout(Parcel(3), SECOND).await;
    assert_eq!(back(late), (NotAccepted::Full, Some(3)), "there was no room in time");
    let (stopped, _) = tokio::join!(waits.call(Parcel(4)), waits.stop(Stop::Now));
    assert_eq!(back(stopped), (NotAccepted::Stopped, Some(4)), "while it waited for room");
    assert_eq!(back(held.call(Parcel(5)).await), (NotAccepted::Stopped, Some(5)));
    assert_eq!(back(waits.call(Parcel(6)).await), (NotAccepted::Stopped, Some(6)));
    assert_eq!((waits.stats().rejected, waits.stats().accepted), (4, 0));

    let nobody = Pool::new(|_| Post).workers(0).spawn().await.unwrap();
    assert_eq!(back(nobody.call(Parcel(7)).await), (NotAccepted::NoWorkers, Some(7)));
    let picky = post().dispatch(NoParcels).spawn().await.unwrap();
    assert_eq!(back(picky.call(Parcel(8)).await), (NotAccepted::Refused, Some(8)));
    let keyed = post().ordered_by_opt(|_| None::<u32>).key_required().spawn().await.unwrap();
    assert_eq!(back(keyed.call(Parcel(9)).await), (NotAccepted::KeyRequired, Some(9)));
    let drops = post().overflow(Overflow::DropNewest).spawn().await.unwrap();
    let _held = drops.reserve().await.unwrap();
    assert_eq!(back(drops.call(Parcel(10)).await), (NotAccepted::Dropped, None));
}

/// Calls itself.
struct Narcissus;

impl Actor for Narcissus {
    type Message = Parcel;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, parcel: Parcel, cx: &mut Context<Self>) -> Result<u32, ()> {
        let me = cx.address().ok_or(())?;
        match me.call(parcel).await {
            Err(CallError::WouldDeadlock(Some(parcel))) => Ok(parcel.0),
            _ => Err(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a20_an_actor_that_calls_itself_is_refused_and_has_its_message_back() {
    let pool = Pool::new(|_| Narcissus).workers(1).spawn().await.unwrap();
    assert_eq!(pool.call(Parcel(7)).await, Ok(7));
}

#[test]
fn a06_overload_is_what_later_may_help() {
    let of = |error: SendError<()>| CallError::<NoStamp>::from(error).is_overload();
    let overloads = [SendError::Full(()), SendError::Dropped, SendError::KeyFull(())];
    assert!(overloads.into_iter().all(of));
    let others = [
        SendError::Refused(()),
        SendError::Stopped(()),
        SendError::NoWorkers(()),
        SendError::Parked(()),
        SendError::KeyRequired(()),
    ];
    assert!(!others.into_iter().any(of));
    let ends: [(CallError<NoStamp>, bool); 7] = [
        (CallError::Evicted, true),
        (CallError::Expired, true),
        (CallError::NotTaken(NotAccepted::Full), true),
        (CallError::TimedOut, false),
        (CallError::Stopped, false),
        (CallError::Failed(NoStamp), false),
        (CallError::Panicked("it ticks".to_owned()), false),
    ];
    for (end, expected) in ends {
        assert_eq!(end.is_overload(), expected, "{end:?}");
    }
}
