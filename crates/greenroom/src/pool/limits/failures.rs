//! The limit that follows rejections and timeouts.
//!
//! Additive increase, multiplicative decrease: the rules under which several users of one service
//! reach fair shares without knowing of each other (Chiu and Jain, "Analysis of the increase and
//! decrease algorithms for congestion avoidance in computer networks", Computer Networks and ISDN
//! Systems 17, 1989). The decrease follows the share that failed, up to a half if all did (as in
//! DCTCP; Alizadeh and others, SIGCOMM 2010), so a service that occasionally refuses a message is
//! not treated as one that refuses all.
//!
//! Without failures this limit is the largest possible: latency decides alone. After failures it
//! grows again by halves to just below the limit by latency, which remembers the last good level,
//! and from there by small steps (the fast and the careful part of CUBIC; Ha, Rhee and Xu, ACM
//! SIGOPS OSR 42(5), 2008). Once it has passed that, the failures are forgotten.

use super::{settings::Adaptive, window::Summary};

/// The share of failures that counts as background.
const TOLERATED: f64 = 0.01;
/// Growth per window up to `CAREFUL`.
const RECOVERY: f64 = 1.5;
/// From this share of the limit by latency on, this limit grows by `STEP` of it per window: the
/// level at which messages were rejected is near, and should be passed only slightly.
const CAREFUL: f64 = 0.8;
const STEP: f64 = 0.02;

/// True if enough failed to lower the limit.
pub(super) fn are_many(summary: &Summary) -> bool {
    summary.failed > TOLERATED
}

/// The limit after a window; `by_latency` is the limit by latency.
pub(super) fn next(settings: &Adaptive, limit: f64, summary: &Summary, by_latency: f64) -> f64 {
    if are_many(summary) {
        // Load that was not in flight cannot have been too much or too little; load in
        // flight was too much.
        let in_flight = summary.peak.min(limit);
        return settings.clamp(in_flight * (1.0 - summary.failed / 2.0));
    }
    if !summary.reached(limit) {
        return limit;
    }
    let recovered = (limit * RECOVERY).min(by_latency * CAREFUL);
    let grown = recovered.max(limit + (by_latency * STEP).max(1.0));
    settings.clamp(if grown < by_latency { grown } else { settings.max as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Adaptive = Adaptive::up_to(1_000);

    fn window(failed: f64, peak: f64) -> Summary {
        Summary { latency: Some(1.0), failed, peak, in_flight: peak }
    }

    #[test]
    fn p24_failures_take_off_half_of_their_share() {
        assert_eq!(next(&SETTINGS, 100.0, &window(1.0, 100.0), 100.0), 50.0);
        assert_eq!(next(&SETTINGS, 100.0, &window(0.1, 100.0), 100.0), 95.0);
        assert_eq!(next(&SETTINGS, 100.0, &window(1.0, 10.0), 100.0), 5.0, "of what was in flight");
        assert_eq!(next(&SETTINGS, 1.0, &window(1.0, 1.0), 100.0), 1.0, "never below the minimum");
    }

    #[test]
    fn p24_a_background_of_failures_does_not_hold_growth_up() {
        assert_eq!(next(&SETTINGS, 90.0, &window(0.009, 90.0), 100.0), 92.0);
        assert_eq!(next(&SETTINGS, 90.0, &window(0.009, 89.0), 100.0), 90.0, "not reached");
    }

    #[test]
    fn p24_recovery_is_fast_at_first_then_careful_and_ends_where_latency_decides() {
        let mut limit = 8.0;
        let grown: Vec<f64> = std::iter::repeat_with(|| {
            limit = next(&SETTINGS, limit, &window(0.0, limit), 40.0);
            limit.floor()
        })
        .take(12)
        .collect();
        let careful = [32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0, 1_000.0];
        assert_eq!(grown[..3], [12.0, 18.0, 27.0]);
        assert_eq!(grown[3..], careful);
    }
}
