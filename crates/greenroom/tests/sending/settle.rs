//! Waiting on virtual time for what can happen at once.

use std::time::Duration;

/// Lets everybody do what there is to do at this moment.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
