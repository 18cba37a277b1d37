//! The limit that follows latency.
//!
//! If handling takes as long as at rest, more can be done at once; if it takes longer, part of the
//! load in flight only waits at the other side. The quotient of the two, the *gradient*, times the
//! load in flight is about the load that is really being worked on; a little is added so that the
//! limit keeps trying:
//!
//! ```text
//! gradient = min(1, tolerance × latency at rest ÷ latency)
//! limit   ← limit × gradient + √limit
//! ```
//!
//! The idea of comparing with the latency at rest is TCP Vegas' (Brakmo and Peterson, IEEE JSAC
//! 13(8), 1995); the form is that of Gradient2 in Netflix' concurrency-limits. Unlike there, the
//! latency at rest is measured ([`Baseline`](super::baseline::Baseline)) and not a long mean, which
//! under steady overload learns the overload. For a service with room for `c` at once the limit
//! settles at about `tolerance × c + √c`.

use super::{settings::Adaptive, window::Summary};

/// The step of a window towards a lower limit: one slow window takes a fifth at most.
const SMOOTHING: f64 = 0.2;

/// The limit after a window in which handling took `latency` and at rest takes
/// `baseline`, both in seconds.
pub(super) fn next(
    settings: &Adaptive,
    limit: f64,
    summary: &Summary,
    latency: f64,
    baseline: f64,
) -> f64 {
    if summary.is_well_under(limit) {
        return limit;
    }
    let gradient = (settings.tolerance * baseline / latency.max(f64::MIN_POSITIVE)).min(1.0);
    // If the limit is only observed, more than the limit may be in flight.
    let in_flight = summary.in_flight.max(limit);
    let suggested = in_flight * gradient + limit.sqrt();
    let next = match suggested < limit {
        true => limit + (suggested - limit) * SMOOTHING,
        false if summary.reached(limit) => suggested.min(limit + limit.sqrt()),
        false => limit,
    };
    settings.clamp(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Adaptive = Adaptive::up_to(1_000);

    fn after(peak: f64, latency: f64) -> f64 {
        let summary = Summary { latency: Some(latency), failed: 0.0, peak, in_flight: peak };
        next(&SETTINGS, 100.0, &summary, latency, 1.0)
    }

    #[test]
    fn p24_latency_as_at_rest_grows_a_limit_that_was_reached_by_its_root() {
        assert_eq!(after(100.0, 1.0), 110.0);
        assert_eq!(after(100.0, 1.5), 110.0, "within the tolerance");
    }

    #[test]
    fn p24_latency_above_the_tolerance_shrinks_it_part_of_the_way() {
        // Three times as slow: half of it only waits; 50 + 10 are suggested.
        assert_eq!(after(100.0, 3.0), 92.0);
        assert!(after(100.0, f64::MAX) >= 80.0);
    }

    #[test]
    fn p24_a_limit_that_was_not_reached_does_not_grow() {
        assert_eq!(after(99.0, 1.0), 100.0);
        assert_eq!(after(40.0, 1.0), 100.0);
    }

    #[test]
    fn p24_latency_that_the_limit_cannot_have_caused_does_not_shrink_it() {
        assert_eq!(after(49.0, 9.0), 100.0);
        assert!(after(51.0, 9.0) < 100.0);
    }

    #[test]
    fn p24_the_gradient_stays_within_the_bounds() {
        let tight = Adaptive { min: 95, ..Adaptive::up_to(105) };
        let busy = Summary { latency: Some(1.0), failed: 0.0, peak: 100.0, in_flight: 100.0 };
        assert_eq!(next(&tight, 100.0, &busy, 1.0, 1.0), 105.0);
        assert_eq!(next(&tight, 100.0, &busy, 99.0, 1.0), 95.0);
    }
}
