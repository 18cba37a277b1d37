//! Throttles producers of a system that has no bound, so that they do not run out of memory, nor
//! fill it for a better figure.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::message::Counters;

/// Messages that may be in flight.
const ROOM: u64 = 65_536;
/// Messages that a producer takes leave for at once. It lets others run before it takes more.
const CHUNK: u64 = 64;
/// How long a producer sleeps when there is no room: far less than it takes to
/// handle what is in flight.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone)]
pub struct Window {
    counters: Counters,
    /// Messages that producers have taken leave for, all together.
    taken: Arc<AtomicU64>,
    /// Of these, what this producer has not used.
    left: u64,
    /// Handled messages when it was last looked: looking takes cache lines from workers.
    handled: u64,
}

impl Window {
    pub fn new(counters: &Counters) -> Self {
        Self { counters: counters.clone(), taken: Arc::default(), left: 0, handled: 0 }
    }

    /// Waits until one more message may be sent.
    pub async fn admit(&mut self) {
        if self.left == 0 {
            self.more().await;
        }
        self.left -= 1;
    }

    async fn more(&mut self) {
        let taken = self.taken.fetch_add(CHUNK, Ordering::Relaxed) + CHUNK;
        self.left = CHUNK;
        tokio::task::yield_now().await;
        while taken > self.handled + ROOM {
            self.handled = self.counters.sum();
            if taken > self.handled + ROOM {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn two_producers_share_the_room_and_go_on_when_some_is_handled() {
        let counters = Counters::new(1);
        let mut windows = [Window::new(&counters), Window::new(&counters)];
        windows[1] = windows[0].clone();
        for sent in 0..ROOM {
            windows[(sent / CHUNK % 2) as usize].admit().await;
        }
        let wait = Duration::from_millis(50);
        assert!(
            timeout(wait, windows[0].clone().admit()).await.is_err(),
            "more than there is room"
        );
        (0..2 * CHUNK).for_each(|_| counters.of(0).add());
        assert!(timeout(wait, windows[1].admit()).await.is_ok(), "no room though some is handled");
    }
}
