//! Waiting on virtual time for everything that can happen at once.

use std::time::Duration;

/// Lets all tasks do everything that they can do now.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
