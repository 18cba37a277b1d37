//! One demonstration.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    arrivals::Arrivals,
    side::{Side, SideKind},
};

/// One demonstration.
pub(super) struct Show {
    /// The messages that both sides are sent.
    pub(super) arrivals: Arc<Arrivals>,
    /// When the first message could arrive.
    pub(super) started: Instant,
    /// The pool, and with `--slow-key` also hashing.
    pub(super) sides: Vec<Arc<Side>>,
}

impl Show {
    /// Draws the messages. The clock runs from now on.
    pub(super) fn new(slow_key: bool, seed: u64, length: Duration) -> Self {
        let started = Instant::now();
        let kinds: &[SideKind] = if slow_key {
            &[SideKind::Lanes, SideKind::Hashing]
        } else {
            &[SideKind::Flaky { seed }]
        };
        let side = |kind: &SideKind| Arc::new(Side::new(*kind, started));
        Self {
            arrivals: Arc::new(Arrivals::draw(seed, length, slow_key)),
            started,
            sides: kinds.iter().map(side).collect(),
        }
    }

    pub(super) fn has_slow_key(&self) -> bool {
        self.sides.len() > 1
    }

    /// Sends everything at its due time, and waits until all of it has been handled.
    pub(super) async fn play(&self) -> Result<(), String> {
        let play = |side: &Arc<Side>| {
            let (side, arrivals) = (side.clone(), self.arrivals.clone());
            tokio::spawn(async move { side.play(&arrivals).await })
        };
        let playing: Vec<_> = self.sides.iter().map(play).collect();
        for side in playing {
            side.await.map_err(|error| error.to_string())??;
        }
        Ok(())
    }
}
