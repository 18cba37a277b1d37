//! The task that makes requests, as many as may be under way.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};

use super::{delivery, lines::NextRequest, shared::Shared, target::Remote};

/// Until all is settled and nothing comes any more.
pub(super) async fn drive<R: Remote>(shared: Arc<Shared<R>>) {
    let _end = DriverEnd(&shared);
    // Dropped with the driver: their events are refused.
    let mut requests = FuturesUnordered::new();
    loop {
        let until = match shared.next() {
            NextRequest::Send(events) => {
                requests.push(delivery::deliver(&shared, events));
                continue;
            }
            NextRequest::WaitUntil(until) => Some(until),
            NextRequest::Wait => None,
            NextRequest::End => return,
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            Some(()) = requests.next() => {}
        }
    }
}

/// However the driver ends, nothing that came or comes later waits for ever.
struct DriverEnd<'a, R: Remote>(&'a Shared<R>);

impl<R: Remote> Drop for DriverEnd<'_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("its driver panicked; see the log, and please report this");
        }
        self.0.give_up();
    }
}
