//! Workers that sleep for as long as a message says.

use std::time::Duration;

use greenroom::prelude::*;

/// The value that panics, instead of a time.
pub(crate) const PANIC: u64 = u64::MAX;

/// Sleeps for this many milliseconds, or panics. Answers with its slot.
pub(crate) struct Sleeper;

impl Actor for Sleeper {
    type Message = u64;
    type Reply = usize;
    type Error = ();

    async fn handle(&mut self, ms: u64, cx: &mut Context<Self>) -> Result<usize, ()> {
        assert!(ms != PANIC, "on purpose");
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(cx.slot())
    }
}
