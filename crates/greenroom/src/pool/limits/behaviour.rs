//! Adaptive limits in front of a simulated service.

use std::{ops::Range, time::Duration};

use proptest::prelude::*;

use super::{
    simulation::{Simulation, Stretch},
    *,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const SEEDS: Range<u64> = 0..3;

fn enforced() -> Adaptive {
    Adaptive::up_to(1_000).enforced()
}

/// The limit is near the number that the service can work on at once, which is 50.
#[track_caller]
fn assert_near_the_knee(stretch: &Stretch, seed: u64) {
    let limit = stretch.mean_limit();
    assert!((50.0..100.0).contains(&limit), "seed {seed}: a limit of {limit} for a service of 50");
}

#[test]
fn p24_the_limit_comes_to_rest_near_the_knee() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.run(10 * SECOND);
        let later = simulation.run(60 * SECOND);
        assert_near_the_knee(&later, seed);
        assert!(later.per_second() > 0.95 * 2_500.0, "seed {seed}: {later:?}");
        assert!(later.mean_latency() < 40 * MILLI, "seed {seed}: {later:?}");
    }
}

#[test]
fn p24_the_limit_does_not_creep_up_under_steady_overload() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.run(200 * SECOND);
        assert_near_the_knee(&simulation.run(60 * SECOND), seed);
    }
}

#[test]
fn p24_a_wide_spread_of_latency_does_not_starve_the_service() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.spread = 1.0;
        simulation.run(10 * SECOND);
        let later = simulation.run(60 * SECOND);
        assert!(later.per_second() > 0.93 * 2_500.0, "seed {seed}: {later:?}");
    }
}

#[test]
fn p24_fast_failures_shrink_the_limit_and_it_recovers() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        let before = simulation.run(20 * SECOND);
        simulation.is_out = true;
        simulation.run(3 * SECOND);
        let outage = simulation.run(57 * SECOND);
        assert!(outage.highest <= 2, "seed {seed}: {outage:?}");
        simulation.is_out = false;
        simulation.run(5 * SECOND);
        let after = simulation.run(5 * SECOND);
        assert!(after.per_second() > 0.9 * before.per_second(), "seed {seed}: {after:?}");
    }
}

#[test]
fn p24_timeouts_shrink_the_limit() {
    let mut limit = AdaptiveLimit::new(Adaptive { initial: 64, ..enforced() })
        .unwrap_or_else(|e| panic!("{e}"));
    for millis in 0..2_000 {
        limit.try_start();
        limit.finish(millis * MILLI, SECOND, Outcome::TimedOut);
    }
    assert_eq!(limit.limit(), 1);
}

#[test]
fn p24_a_service_that_refuses_beyond_its_queue_is_used_well() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.queue = 5;
        simulation.run(10 * SECOND);
        let later = simulation.run(60 * SECOND);
        assert!(later.per_second() > 0.9 * 2_500.0, "seed {seed}: {later:?}");
        assert!(later.refused * 10 < later.done, "seed {seed}: {later:?}");
    }
}

#[test]
fn p24_a_limit_that_nobody_needs_does_not_grow() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        // Eight keys: however many messages there are, no more than eight could start.
        simulation.demand = 8;
        assert_eq!(simulation.run(120 * SECOND).highest, 20, "the limit at the start");
        simulation.demand = 30;
        let more = simulation.run(60 * SECOND);
        assert!((30..=36).contains(&more.highest), "a step above what is asked for: {more:?}");
    }
}

#[test]
fn p24_a_service_that_becomes_smaller_gets_a_smaller_limit() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.run(20 * SECOND);
        simulation.capacity = 10;
        simulation.run(15 * SECOND);
        let smaller = simulation.run(60 * SECOND);
        assert!((10.0..25.0).contains(&smaller.mean_limit()), "seed {seed}: {smaller:?}");
        simulation.capacity = 50;
        simulation.run(15 * SECOND);
        assert_near_the_knee(&simulation.run(60 * SECOND), seed);
    }
}

#[test]
fn p24_a_service_that_becomes_slower_for_good_is_not_taken_for_overloaded() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        simulation.run(20 * SECOND);
        simulation.service *= 4;
        simulation.run(60 * SECOND);
        assert_near_the_knee(&simulation.run(60 * SECOND), seed);
    }
}

#[test]
fn p24_a_slow_service_recovers_from_an_outage_too() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(enforced(), seed);
        (simulation.capacity, simulation.service) = (20, 500 * MILLI);
        simulation.run(30 * SECOND);
        simulation.is_out = true;
        simulation.run(10 * SECOND);
        simulation.is_out = false;
        simulation.run(10 * SECOND);
        let after = simulation.run(10 * SECOND);
        assert!(after.per_second() > 0.9 * 40.0, "seed {seed}: {after:?}");
    }
}

/// The known latency at rest.
fn lowest(simulation: &Simulation) -> Duration {
    Duration::from_secs_f64(simulation.limit.baseline.lowest().unwrap_or_default())
}

#[test]
fn p24_a_time_of_little_load_measures_the_latency_at_rest() {
    for mode in [Mode::Observe, Mode::Enforce] {
        let mut simulation = Simulation::new(Adaptive { mode, ..enforced() }, 0);
        simulation.demand = 8;
        simulation.run(10 * SECOND);
        simulation.service *= 4;
        simulation.run(20 * SECOND);
        let baseline = lowest(&simulation);
        assert!((70 * MILLI..90 * MILLI).contains(&baseline), "{mode:?}: {baseline:?}");
    }
}

#[test]
fn p24_a_flood_that_never_ends_is_slowly_believed_where_nothing_can_be_held_back() {
    let mut simulation = Simulation::new(Adaptive::up_to(1_000), 0);
    simulation.demand = 30;
    simulation.run(10 * SECOND);
    simulation.demand = 400;
    let before = lowest(&simulation);
    simulation.run(60 * SECOND);
    let after = lowest(&simulation);
    assert!(after > before.mul_f64(1.05) && after < before.mul_f64(1.25), "{before:?} {after:?}");
}

#[test]
fn p24_a_window_lasts_as_long_as_what_it_measures() {
    let mut limit = AdaptiveLimit::new(Adaptive { initial: 10, ..enforced() })
        .unwrap_or_else(|e| panic!("{e}"));
    let mut changes = Vec::new();
    for now in (0..300).map(|tenth| tenth * 10 * MILLI) {
        while limit.try_start() {}
        changes.extend(limit.finish(now, SECOND, Outcome::Done).map(|_| now));
    }
    assert_eq!(changes, [200 * MILLI, 1_200 * MILLI, 2_200 * MILLI]);
}

#[test]
fn p24_observing_holds_nothing_back_and_tells_what_it_would_do() {
    for seed in SEEDS {
        let mut simulation = Simulation::new(Adaptive::up_to(1_000), seed);
        simulation.demand = 30;
        simulation.run(10 * SECOND);
        simulation.demand = 400;
        simulation.run(10 * SECOND);
        let flood = simulation.run(20 * SECOND);
        assert_near_the_knee(&flood, seed);
        let AdaptiveLimit { in_flight, held_back, .. } = simulation.limit;
        assert_eq!(in_flight, 400);
        assert!(held_back > 40_000, "all but a few of 2,500 a second: {held_back}");
    }
}

#[test]
fn p24_a_change_of_the_limit_is_told_with_its_reason() {
    let mut limit = AdaptiveLimit::new(Adaptive { initial: 10, ..enforced() })
        .unwrap_or_else(|e| panic!("{e}"));
    let mut began = 0;
    let mut window = |latency: Duration, outcome| {
        while limit.try_start() {}
        let ends = [began * MILLI; 9].into_iter().chain([(began + 200) * MILLI]);
        began += 200;
        let changes = ends.filter_map(|now| limit.finish(now, latency, outcome));
        changes.map(|change| (change.from, change.to, change.reason)).next()
    };
    let (room, probe) = (LimitReason::Room, LimitReason::Probe);
    assert_eq!(window(MILLI, Outcome::Done), Some((10, 13, room)));
    assert_eq!(window(MILLI, Outcome::Done), Some((13, 16, room)));
    assert_eq!(window(MILLI, Outcome::Done), Some((16, 20, room)));
    assert_eq!(window(MILLI, Outcome::Done), Some((20, 12, probe)), "24 would be next");
    assert_eq!(window(MILLI, Outcome::Done), None, "runs dry");
    assert_eq!(window(MILLI, Outcome::Done), Some((12, 25, probe)));
    let slow = LimitReason::Slow { latency: 9 * MILLI, baseline: MILLI };
    assert_eq!(window(9 * MILLI, Outcome::Done), Some((25, 22, slow)));
    let failures = LimitReason::Failures { share: 1.0 };
    assert_eq!(window(MILLI, Outcome::Rejected), Some((22, 11, failures)));
}

#[test]
fn p24_settings_of_a_limit_out_of_range_are_refused() {
    let refused = |settings| match AdaptiveLimit::new(settings) {
        Err(crate::SpawnError::OutOfRange { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    let fine = Adaptive::up_to(10);
    assert_eq!(refused(Adaptive::up_to(0)), "limit.max");
    assert_eq!(refused(Adaptive::up_to(usize::MAX)), "limit.max");
    assert_eq!(refused(Adaptive { min: 0, ..fine }), "limit.min");
    assert_eq!(refused(Adaptive { min: 11, ..fine }), "limit.min");
    assert_eq!(refused(Adaptive { initial: 11, ..fine }), "limit.initial");
    assert_eq!(refused(Adaptive { window: Duration::ZERO, ..fine }), "limit.window");
    for tolerance in [0.9, f64::NAN] {
        assert_eq!(refused(Adaptive { tolerance, ..fine }), "limit.tolerance (percent)");
    }
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        6 => Just(Outcome::Done),
        1 => Just(Outcome::Rejected),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Ignored),
    ]
}

proptest! {
    #[test]
    fn p24_whatever_happens_the_bounds_hold(
        min in 1..20_usize,
        more in 0..50_usize,
        steps in prop::collection::vec((0..8_usize, 0..100_u64, 0..u64::MAX, any_outcome()), 1..400),
    ) {
        let max = min + more;
        let settings = Adaptive { min, initial: max, ..Adaptive::up_to(max).enforced() };
        let mut limit = AdaptiveLimit::new(settings).unwrap_or_else(|error| panic!("{error}"));
        let (mut now, mut in_flight) = (Duration::ZERO, 0);
        for (starts, millis, latency, outcome) in steps {
            now += Duration::from_millis(millis);
            for _ in 0..starts {
                let had_room = in_flight < limit.limit();
                prop_assert_eq!(limit.try_start(), had_room);
                in_flight += usize::from(had_room);
            }
            if in_flight > 0 {
                let before = limit.limit();
                let change = limit.finish(now, Duration::from_nanos(latency), outcome);
                prop_assert_eq!(change.map_or(before, |change| change.to), limit.limit());
                in_flight -= 1;
            }
            prop_assert_eq!(limit.in_flight, in_flight);
            prop_assert!((min..=max).contains(&limit.limit()));
        }
    }
}
