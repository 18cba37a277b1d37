//! The task that publishes, with as many publishes under way as there may be.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};

use super::{delivery, lines::Next, shared::Shared};

/// Until all is settled and nothing comes any more.
pub(super) async fn drive(shared: Arc<Shared>) {
    let _end = End(&shared);
    // Dropped with the driver: what they have in hand is refused.
    let mut under_way = FuturesUnordered::new();
    loop {
        let until = match shared.next() {
            Next::Publish(waiting) => {
                under_way.push(delivery::deliver(&shared, waiting));
                continue;
            }
            Next::WaitUntil(until) => Some(until),
            Next::Wait => None,
            Next::End => return,
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            Some(()) = under_way.next() => {}
        }
    }
}

/// However the driver ends, nothing that came or comes later waits for ever.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("its driver panicked; see the log, and please report this");
        }
        self.0.give_up();
    }
}
