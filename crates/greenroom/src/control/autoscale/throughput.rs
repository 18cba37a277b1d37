//! The throughput of one busy worker.

/// The weight that earlier samples keep at each new one: a change of pace is accepted after two or
/// three samples, and a single odd second is not.
const KEPT: f64 = 0.5;
/// Below this many remembered messages nothing is known: the last was handled some ten samples ago.
const LEAST_HANDLED: f64 = 0.001;

/// Messages handled per second that a worker was busy, over the last few samples. Both are kept
/// separately and divided late, so that a sample with little work has little weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Throughput {
    handled: f64,
    busy_seconds: f64,
}

impl Throughput {
    pub(super) fn add(&mut self, handled: u64, busy_seconds: f64) {
        self.handled = self.handled * KEPT + handled as f64;
        self.busy_seconds = self.busy_seconds * KEPT + busy_seconds;
    }

    /// `None` if nothing was handled recently.
    pub(super) fn per_worker(&self) -> Option<f64> {
        let known = self.handled >= LEAST_HANDLED && self.busy_seconds > 0.0;
        known.then(|| self.handled / self.busy_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p23_throughput_is_unknown_until_something_is_handled() {
        let mut throughput = Throughput::default();
        throughput.add(0, 3.0);
        assert_eq!(throughput.per_worker(), None);
        throughput.add(5, 3.5);
        assert_eq!(throughput.per_worker(), Some(1.0));
    }

    #[test]
    fn p23_an_idle_second_does_not_change_the_throughput() {
        let mut throughput = Throughput::default();
        throughput.add(40, 4.0);
        throughput.add(0, 0.0);
        assert_eq!(throughput.per_worker(), Some(10.0));
    }

    #[test]
    fn p23_a_change_of_pace_is_believed_after_a_few_samples() {
        let mut throughput = Throughput::default();
        (0..20).for_each(|_| throughput.add(100, 1.0));
        (0..4).for_each(|_| throughput.add(10, 1.0));
        let per_worker = throughput.per_worker().unwrap_or_default();
        assert!((10.0..20.0).contains(&per_worker), "{per_worker}");
    }
}
