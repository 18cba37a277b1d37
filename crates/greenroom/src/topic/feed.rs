//! A task that sends events to a mailbox.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use greenroom_queue::discard::discard;

use super::receiver::Receiver;
use crate::{Address, NotAccepted, WeakAddress, event::Event};

/// Sends events to a mailbox, in order, each as soon as there is room. Returns whether the mailbox
/// is gone; false if no event will follow.
pub(super) async fn feed<E, M, R, F>(
    events: &mut Receiver<E>,
    to: &WeakAddress<M, R, F>,
    convert: impl Fn(Event<E>) -> Option<M>,
) -> bool
where
    E: Clone,
    M: Send,
    R: Send,
    F: Send,
{
    let mut untold = 0;
    while let Some(event) = events.next().await {
        let item = match event {
            Event::Item(item) => item,
            Event::Lagged(missed) => {
                untold += missed;
                continue;
            }
        };
        let Some(address) = to.upgrade() else { return true };
        if untold > 0 {
            let news = Event::Lagged(untold);
            match caught(async { send(&address, convert(news)).await }).await {
                // The same report might panic again, forever: it is not repeated.
                Some(Ok(())) | None => untold = 0,
                Some(Err(NotAccepted::Stopped | NotAccepted::NoWorkers)) => return true,
                Some(Err(_)) => {
                    events.miss(1);
                    untold += 1;
                    continue;
                }
            }
        }
        let item = Event::Item(Arc::unwrap_or_clone(item));
        match caught(async { send(&address, convert(item)).await }).await {
            Some(Ok(())) => continue,
            Some(Err(NotAccepted::Stopped | NotAccepted::NoWorkers)) => return true,
            Some(Err(_)) | None => {}
        }
        events.miss(1);
        untold += 1;
    }
    false
}

async fn send<M: Send, R: Send, F: Send>(
    to: &Address<M, R, F>,
    message: Option<M>,
) -> Result<(), NotAccepted> {
    match message {
        Some(message) => to.send(message).await.map_err(|error| error.without_message()),
        None => Ok(()),
    }
}

/// `None` if the future panics.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(panic) => {
            discard(panic);
            tracing::error!("making a message from an event panicked; the event is missed");
            Poll::Ready(None)
        }
    })
    .await
}
