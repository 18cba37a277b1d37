//! Holding load back for a few windows, to see how long handling takes at rest.

use super::{
    baseline::{Baseline, ProbeResult},
    settings::Adaptive,
};

/// Whether the latency at rest is being measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Probe {
    /// Leaves by `begin`, when the baseline is stale and the load is not small.
    Off,
    /// The queue at the other side runs dry. Left with the next window.
    Draining(ProbeStep),
    /// Leaves with the next window, by which the baseline is known, or another step follows.
    Measuring(ProbeStep),
}

/// One step of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProbeStep {
    /// How many may be in flight meanwhile.
    limit: f64,
    /// The latency with twice the load, in seconds.
    before: f64,
}

impl Probe {
    /// Half of `limit`, from a window in which handling took `latency`.
    pub(super) fn begin(settings: &Adaptive, limit: f64, latency: f64) -> Self {
        Self::Draining(ProbeStep { limit: settings.clamp(limit / 2.0), before: latency })
    }

    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The limit, as far as the probe allows it.
    pub(super) fn hold_back(self, limit: f64) -> f64 {
        match self {
            Self::Off => limit,
            Self::Draining(step) | Self::Measuring(step) => limit.min(step.limit),
        }
    }

    /// After a window. One in which nothing was done measures nothing, and the
    /// baseline stays stale.
    pub(super) fn next(
        self,
        settings: &Adaptive,
        baseline: &mut Baseline,
        latency: Option<f64>,
    ) -> Self {
        match (self, latency) {
            (Self::Draining(step), _) => Self::Measuring(step),
            (Self::Measuring(step), Some(latency)) => step.measured(settings, baseline, latency),
            _ => Self::Off,
        }
    }
}

impl ProbeStep {
    fn measured(self, settings: &Adaptive, baseline: &mut Baseline, latency: f64) -> Probe {
        let smaller = Probe::begin(settings, self.limit, latency);
        match baseline.probe(self.before, latency) {
            ProbeResult::AtRest => Probe::Off,
            ProbeResult::StillQueued if smaller.hold_back(self.limit) < self.limit => smaller,
            ProbeResult::StillQueued => {
                baseline.measured(latency);
                Probe::Off
            }
        }
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
        let mut probe = Probe::begin(&SETTINGS, 16.0, 9.0);
        let mut limits = Vec::new();
        for latency in latencies {
            limits.push(probe.hold_back(16.0));
            probe = probe.next(&SETTINGS, &mut baseline, None);
            probe = probe.next(&SETTINGS, &mut baseline, Some(*latency));
        }
        assert!(!probe.is_on());
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
        let mut probe = Probe::begin(&SETTINGS, 16.0, 9.0);
        probe = probe.next(&SETTINGS, &mut baseline, None);
        probe = probe.next(&SETTINGS, &mut baseline, None);
        assert_eq!((probe, baseline.lowest()), (Probe::Off, Some(1.0)));
    }
}
