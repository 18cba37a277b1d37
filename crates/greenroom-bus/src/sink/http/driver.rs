//! The task that hands out requests, as many as may be under way.

use std::sync::Arc;

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{delivery, queue::NextRequest, shared::Shared};

/// Until all is settled and nothing comes any more.
pub(super) async fn drive(shared: Arc<Shared>) {
    let _end = DriverEnd(&shared);
    // Dropped with the driver: what they have in hand is refused.
    let mut requests = JoinSet::new();
    loop {
        let until = match shared.next() {
            NextRequest::Send(events) => {
                requests.spawn(delivery::deliver(shared.clone(), events));
                continue;
            }
            NextRequest::WaitUntil(until) => Some(until),
            NextRequest::Wait => None,
            NextRequest::End => return,
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            Some(ended) = requests.join_next() => if ended.is_err_and(|error| error.is_panic()) {
                shared.fail("a request panicked; see the log, and please report this");
                return;
            },
        }
    }
}

/// However the driver ends, nothing that came or comes later waits for ever.
struct DriverEnd<'a>(&'a Shared);

impl Drop for DriverEnd<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("its driver panicked; see the log, and please report this");
        }
        self.0.give_up();
    }
}
