//! Messages that did not come in time.

use std::time::Duration;

use tokio::time::Instant;

use super::super::hold::Missing;

/// Messages that have not come in their time. Another process reads the consumer, it seems, or they
/// never come: at each gap, everything would stand still for that time again.
#[derive(Debug, Clone, Copy)]
pub(super) struct InVain {
    until: Instant,
    pub(super) missing: Missing,
}

impl InVain {
    /// Until these have come, or for this long, nothing is waited for.
    pub(super) fn new(missing: Missing, ack_wait: Duration, now: Instant) -> Self {
        Self { until: now + 10 * ack_wait, missing }
    }

    /// Whether there are any still.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        now < self.until && self.missing.count != Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn n06_what_was_waited_for_in_vain_is_so_until_all_has_come_or_for_a_time() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut in_vain = InVain::new(Missing::asked(3, 9, 1), second, now);
        in_vain.missing.comes(10);
        in_vain.missing.comes(9);
        assert!(in_vain.lasts(now), "one was delivered later");
        assert!(!in_vain.lasts(now + 10 * second));
        in_vain.missing.comes(4);
        assert!(!in_vain.lasts(now));
        let unknown = InVain::new(Missing::default(), second, now);
        assert!(unknown.lasts(now), "nobody knows how many");
    }
}
