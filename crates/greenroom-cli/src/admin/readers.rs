//! Concurrent readers of dead letters.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::answer::Refusal;

/// Limits the readers of the dead-letter file, as a large file takes long: only a few at a time.
#[derive(Clone)]
pub(super) struct Readers(Arc<Semaphore>);

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS)))
    }
}

/// The most readers at a time.
const READERS: usize = 4;

impl Readers {
    pub(super) async fn read<T: Send + 'static>(
        &self,
        at: &str,
        read: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(turn) = self.0.clone().try_acquire_owned() else {
            let what = format!("the dead letters are being read for {READERS} requests already");
            let next = "try again when those are done";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, what, at, next));
        };
        // The turn ends with the read, even if the client is gone.
        let read = move || {
            let _turn = turn;
            read()
        };
        apart(at, read).await
    }
}

/// Reads files on another thread, so that other requests are answered in the meantime.
pub(super) async fn apart<T: Send + 'static>(
    at: &str,
    read: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let lost = |error| {
        let (status, what) = (StatusCode::INTERNAL_SERVER_ERROR, format!("not read: {error}"));
        Refusal::new(status, what, at, "please report this")
    };
    tokio::task::spawn_blocking(read).await.map_err(lost)?
}
