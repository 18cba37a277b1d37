//! Cancellation: a result is no longer wanted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

/// Shows that the result of some work is no longer wanted. The worker may check it, wait for it
/// alongside something else, or ignore it. Nothing is interrupted from outside, so state that `&mut
/// self` guards is never left half changed.
///
/// A clone is the same token. Once cancelled it stays so; cancelling again does nothing.
///
/// ```
/// # use greenroom::CancellationToken;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let token = CancellationToken::new();
/// let worker = tokio::spawn({
///     let token = token.clone();
///     async move {
///         tokio::select! {
///             () = token.cancelled() => "tidied up",
///             () = std::future::pending() => "done",
///         }
///     }
/// });
/// token.cancel();
/// assert_eq!(worker.await.ok(), Some("tidied up"));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CancellationToken(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Set once, before the waiting tasks are notified.
    cancelled: AtomicBool,
    /// Wakes the waiting tasks.
    told: Notify,
}

impl CancellationToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels, and wakes all tasks that wait for it.
    pub fn cancel(&self) {
        if !self.0.cancelled.swap(true, Ordering::AcqRel) {
            self.0.told.notify_waiters();
        }
    }

    /// True once it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Resolves once it is cancelled; at once if it is already.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        // Created before the check, so that a cancellation between the two is not missed.
        let told = self.0.told.notified();
        if !self.is_cancelled() {
            told.await;
        }
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancellationToken").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p12_all_who_wait_for_a_token_hear_of_it_once_and_for_good() {
        let token = CancellationToken::new();
        let wait = |token: CancellationToken| tokio::spawn(async move { token.cancelled().await });
        let waiting = [wait(token.clone()), wait(token.clone())];
        tokio::task::yield_now().await;
        assert!(!token.is_cancelled() && waiting.iter().all(|task| !task.is_finished()));
        token.clone().cancel();
        token.cancel();
        for task in waiting {
            assert!(task.await.is_ok());
        }
        token.cancelled().await;
        assert!(token.is_cancelled());
    }
}
