//! Sends with a limited wait (A05).

use std::time::Duration;

use greenroom::{Envelope, NotAccepted, SendError};

use crate::sending::settle::settle;

use super::scribe::{Deed, SECOND, finish, normal, scribes};

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
    // Both are in time.
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
    let late = pool.call_timeout((0, 4, Deed::Return), Duration::from_millis(10)).await;
    assert_eq!(late, Err(SendError::Full((0, 4, Deed::Return)).into()));
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
        assert!(error.into_message().is_some());
    }
    assert_eq!(SendError::<Opaque>::Dropped.without_message(), NotAccepted::Dropped);
    assert!(SendError::<Opaque>::Dropped.into_message().is_none());
}
