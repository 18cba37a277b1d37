//! Holds load back for a few windows, to measure how long handling takes at rest.

use super::{baseline::Baseline, settings::Adaptive};

/// One step of measuring the latency at rest: the queue at the other side runs dry for a window,
/// and the next one measures. Begins when the baseline is stale and the load is not small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Probe {
    /// The limit in the meantime.
    pub(super) limit: f64,
    /// The latency with twice the load, in seconds.
    before: f64,
    /// Whether the queue has had its window to run dry.
    measures: bool,
}

impl Probe {
    /// Half of `limit`, from a window in which handling took `latency`.
    pub(super) fn begin(settings: &Adaptive, limit: f64, latency: f64) -> Self {
        Self { limit: settings.clamp(limit / 2.0), before: latency, measures: false }
    }

    /// Continues after a window. `None` once the baseline is known. A window without work measures
    /// nothing, and the baseline stays stale.
    pub(super) fn next(
        self,
        settings: &Adaptive,
        baseline: &mut Baseline,
        latency: Option<f64>,
    ) -> Option<Self> {
        if !self.measures {
            return Some(Self { measures: true, ..self });
        }
        let latency = latency?;
        if baseline.learn_rest(self.before, latency) {
            return None;
        }
        let smaller = Self::begin(settings, self.limit, latency);
        if smaller.limit < self.limit {
            return Some(smaller);
        }
        baseline.measured(latency);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Adaptive = Adaptive { min: 3, ..Adaptive::up_to(100) };

    /// The limits of a probe from 16 on, and the baseline afterwards, when these
    /// latencies are measured.
    fn run(latencies: &[f64]) -> (Vec<f64>, Option<f64>) {
        let mut baseline = Baseline::default();
        baseline.measured(1.0);
        let mut probe = Some(Probe::begin(&SETTINGS, 16.0, 9.0));
        let mut limits = Vec::new();
        for latency in latencies {
            let begun = probe.expect("it goes on");
            limits.push(begun.limit);
            let measuring = begun.next(&SETTINGS, &mut baseline, None);
            probe = measuring.and_then(|it| it.next(&SETTINGS, &mut baseline, Some(*latency)));
        }
        assert_eq!(probe, None);
        (limits, baseline.lowest())
    }

    #[test]
    fn p24_a_probe_ends_when_latency_is_as_it_was_at_rest() {
        assert_eq!(run(&[1.1]), (vec![8.0], Some(1.0)));
    }

    #[test]
    fn p24_a_probe_goes_on_while_latency_falls() {
        assert_eq!(run(&[4.0, 2.0, 1.8]), (vec![8.0, 4.0, 3.0], Some(1.8)));
        assert_eq!(run(&[4.0, 3.9]), (vec![8.0, 4.0], Some(3.9)));
    }

    #[test]
    fn p24_a_probe_ends_at_the_smallest_limit() {
        assert_eq!(run(&[6.0, 4.0, 2.0]), (vec![8.0, 4.0, 3.0], Some(2.0)));
    }

    #[test]
    fn p24_a_probe_in_which_nothing_is_done_leaves_the_baseline_alone() {
        let mut baseline = Baseline::default();
        baseline.measured(1.0);
        let probe = Probe::begin(&SETTINGS, 16.0, 9.0).next(&SETTINGS, &mut baseline, None);
        let over = probe.and_then(|probe| probe.next(&SETTINGS, &mut baseline, None));
        assert_eq!((over, baseline.lowest()), (None, Some(1.0)));
    }
}
