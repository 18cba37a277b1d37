//! Waiting for a condition that others change.

use std::pin::pin;

use tokio::sync::Notify;

/// Waits until `look` finds something. It is called at once, and again after each notification:
/// what it looks at is changed first, and `changed` notified after that.
///
/// # Cancel safety
/// A dropped future has done nothing but look.
pub async fn wait_until<T>(changed: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
        let mut changed = pin!(changed.notified());
        changed.as_mut().enable();
        // A change since the first look may have come before this waited for notifications.
        if let Some(found) = look() {
            return found;
        }
        changed.await;
    }
}
