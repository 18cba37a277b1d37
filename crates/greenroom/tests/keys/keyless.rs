//! Messages without a key (K09).

use std::time::Duration;

use greenroom::{NotAccepted, SendError, Stop, TrySendError};

use super::clerk::{
    Clerk, Job,
    Wish::{Nothing, Wait},
};

#[tokio::test(start_paused = true)]
async fn k09_without_a_key_there_is_no_order_or_no_message() {
    let clerk = Clerk::new();
    let pool = || clerk.pool().ordered_by_opt(|job: &Job| (job.0 > 0).then_some(job.0));
    let open = pool().spawn().await.unwrap();
    assert_eq!(open.call((0, 7, Nothing)).await, Ok(7));
    let strict = pool().key_required().spawn().await.unwrap();
    let refused = strict.send((0, 8, Nothing)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::KeyRequired);
    assert_eq!(refused.into_message(), Some((0, 8, Nothing)));
    assert!(matches!(strict.try_send((0, 8, Nothing)), Err(TrySendError::KeyRequired(_))));
    assert_eq!(
        strict.call((0, 8, Nothing)).await,
        Err(SendError::KeyRequired((0, 8, Nothing)).into())
    );
    let permit = strict.reserve().await.unwrap();
    assert_eq!(
        permit.send((0, 8, Nothing)).unwrap_err().without_message(),
        NotAccepted::KeyRequired
    );
    let mut many = [(0, 8, Nothing)].into();
    assert_eq!(strict.send_many(&mut many).await, Err(NotAccepted::KeyRequired));
    assert_eq!((many.len(), strict.stats().accepted), (1, 0));
    assert_eq!(strict.call((1, 9, Nothing)).await, Ok(9));
    assert_eq!(strict.stats().capacity, 100);
    // Every permit is back.
    let all = (0..200).take_while(|n| strict.try_send((n % 50 + 1, 0, Wait)).is_ok()).count();
    assert!(all >= 100, "{all}");
    strict.stop(Stop::within(Duration::ZERO)).await;
}
