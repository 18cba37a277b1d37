//! Samples, and the decisions that follow from them.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn scaler(settings: Autoscale) -> Autoscaler {
    Autoscaler::new(settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Feeds samples a second apart and gives the decisions with their second. The pool follows them.
fn decide_all(scaler: &mut Autoscaler, first: Sample, seconds: u64) -> Vec<(u64, Decision)> {
    let mut workers = first.workers;
    let mut decided = Vec::new();
    for second in 0..seconds {
        let sample = Sample { at: first.at + second as u32 * SECOND, workers, ..first };
        if let Some(decision) = scaler.decide(&sample) {
            workers = decision.to;
            decided.push((second, decision));
        }
    }
    decided
}

/// Full, late, and 10 messages a second from each busy worker.
fn late(workers: usize) -> Sample {
    let handled = 10 * workers as u64;
    Sample { workers, queued: 20, oldest: SECOND, busy: 1.0, handled, ..Sample::default() }
}

#[test]
fn p23_growth_takes_all_steps_at_once() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let decided = decide_all(&mut scaler, late(4), 3);
    // 20 in 100 ms are 20 workers' work, and the 40 a second that continue to arrive are that of 4.
    let expected = seconds(0.5);
    let reason = Reason::Late { queued: 20, oldest: SECOND, expected, per_worker: 10.0 };
    assert_eq!(decided, [(1, Decision { from: 4, to: 24, reason })]);
}

#[test]
fn p23_growth_stops_at_the_maximum_and_at_one_worker_for_each_that_waits() {
    let mut bounded = scaler(Autoscale::between(1, 9));
    assert_eq!(decide_all(&mut bounded, late(4), 2)[0].1.to, 9);
    assert_eq!(decide_all(&mut bounded, late(9), 60), []);
    let slow = Sample { queued: 3, handled: 1, ..late(4) };
    let mut one_each = scaler(Autoscale::between(1, 1_000));
    assert_eq!(decide_all(&mut one_each, slow, 2)[0].1.to, 7);
}

#[test]
fn p23_a_queue_that_will_be_late_is_late_now() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let young = Sample { oldest: Duration::from_millis(1), ..late(4) };
    assert_eq!(decide_all(&mut scaler, young, 2)[0].1.to, 24);
}

#[test]
fn p23_a_queue_that_is_in_time_does_not_grow_the_pool() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let in_time = Sample { queued: 4, oldest: Duration::from_millis(99), ..late(4) };
    assert_eq!(decide_all(&mut scaler, Sample { handled: 4_000, ..in_time }, 100), []);
}

#[test]
fn p23_late_messages_beside_idle_workers_do_not_grow_the_pool() {
    let mut scaler = scaler(Autoscale::between(10, 100));
    let behind_a_key = Sample { busy: 0.1, workers: 10, handled: 10, ..late(10) };
    assert_eq!(decide_all(&mut scaler, behind_a_key, 100), []);
}

#[test]
fn p23_unmeasured_workers_are_at_most_doubled() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let cold = Sample { queued: 1_000, handled: 0, ..late(4) };
    let decided = decide_all(&mut scaler, cold, 7);
    let sizes: Vec<_> = decided.iter().map(|(second, it)| (*second, it.from, it.to)).collect();
    assert_eq!(sizes, [(1, 4, 8), (6, 8, 16)]);
    let reason = Reason::LateAndUnmeasured { queued: 1_000, oldest: SECOND };
    assert_eq!(decided[0].1.reason, reason);
}

#[test]
fn p23_growth_waits_for_its_cool_down() {
    let settings = Autoscale { up_cooldown: 3 * SECOND, ..Autoscale::between(1, 1_000) };
    let decided = decide_all(&mut scaler(settings), late(4), 9);
    let seconds: Vec<_> = decided.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, [1, 4, 7]);
}

#[test]
fn p23_busy_is_not_idle() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let long_handlers = Sample { queued: 0, oldest: Duration::ZERO, handled: 0, ..late(50) };
    assert_eq!(decide_all(&mut scaler, long_handlers, 600), []);
}

#[test]
fn p23_a_shrink_waits_for_its_cool_down_and_keeps_the_rest_as_busy_as_may_be() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let half = Sample { busy: 0.4, workers: 40, ..Sample::default() };
    let decided = decide_all(&mut scaler, half, 200);
    let reason = Reason::Idle { peak_busy: 16.0, within: 30 * SECOND };
    assert_eq!(decided[0], (31, Decision { from: 40, to: 20, reason }));
    assert_eq!(decided[1].0, 62, "the next shrink has a cool-down of its own");
}

#[test]
fn p23_an_idle_pool_shrinks_to_its_minimum() {
    let mut scaler = scaler(Autoscale::between(3, 100));
    let decided = decide_all(&mut scaler, Sample { workers: 80, ..Sample::default() }, 300);
    let sizes: Vec<_> = decided.iter().map(|(_, decision)| decision.to).collect();
    assert_eq!(sizes, [3]);
}

#[test]
fn p23_one_busy_second_within_the_cool_down_keeps_the_size() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    for second in 0..300 {
        let busy = if second % 29 == 0 { 1.0 } else { 0.0 };
        let sample = Sample { at: second * SECOND, busy, workers: 10, ..Sample::default() };
        assert_eq!(scaler.decide(&sample), None);
    }
}

#[test]
fn p23_a_late_second_begins_the_cool_down_anew() {
    let mut scaler = scaler(Autoscale::between(1, 10));
    let idle = Sample { workers: 10, ..Sample::default() };
    assert_eq!(decide_all(&mut scaler, idle, 20), []);
    assert_eq!(scaler.decide(&Sample { at: 20 * SECOND, ..late(10) }), None, "no room to grow");
    let decided = decide_all(&mut scaler, Sample { at: 21 * SECOND, ..idle }, 60);
    assert_eq!(decided.first().map(|(second, decision)| (*second, decision.to)), Some((30, 1)));
}

#[test]
fn p23_the_bounds_hold_at_once() {
    let mut scaler = scaler(Autoscale::between(5, 8));
    let few = Sample { workers: 2, ..Sample::default() };
    let below = Decision { from: 2, to: 5, reason: Reason::BelowMinimum };
    assert_eq!(scaler.decide(&few), Some(below));
    let many = Sample { at: SECOND, workers: 20, ..few };
    let above = Decision { from: 20, to: 8, reason: Reason::AboveMaximum };
    assert_eq!(scaler.decide(&many), Some(above));
}

#[test]
fn p23_a_sample_from_the_past_is_ignored() {
    let mut scaler = scaler(Autoscale::between(1, 100));
    let sample = Sample { at: 10 * SECOND, ..late(4) };
    assert_eq!(scaler.decide(&sample), None);
    assert_eq!(scaler.decide(&sample), None, "no time has passed");
    assert_eq!(scaler.decide(&Sample { at: SECOND, ..sample }), None);
    assert!(scaler.decide(&Sample { at: 11 * SECOND, ..sample }).is_some());
}

#[test]
fn p23_settings_out_of_range_are_refused() {
    let refused = |settings| match Autoscaler::new(settings) {
        Err(SpawnError::OutOfRange { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    let fine = Autoscale::between(1, 2);
    assert_eq!(refused(Autoscale::between(0, 2)), "autoscale.min");
    assert_eq!(refused(Autoscale::between(3, 2)), "autoscale.max");
    assert_eq!(refused(Autoscale { target_age: Duration::ZERO, ..fine }), "autoscale.target_age");
    for busy_share in [0.0, -1.0, 1.1, f64::NAN] {
        assert_eq!(refused(Autoscale { busy_share, ..fine }), "autoscale.busy_share");
    }
}

fn any_sample() -> impl Strategy<Value = (u64, Sample)> {
    let busy = prop_oneof![0.0..=1.0, Just(1.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)];
    let queued = prop_oneof![Just(0), 0..100_usize, 0..=usize::MAX];
    let handled = prop_oneof![Just(0), 0..10_000_u64, 0..=u64::MAX];
    (0..10_000_u64, queued, 0..10_000_u64, busy, handled).prop_map(
        |(millis, queued, oldest, busy, handled)| {
            let oldest = Duration::from_millis(oldest);
            (millis, Sample { queued, oldest, busy, handled, ..Sample::default() })
        },
    )
}

proptest! {
    #[test]
    fn p23_whatever_is_sampled_bounds_and_cool_downs_hold(
        samples in prop::collection::vec(any_sample(), 1..200),
        min in 1..20_usize,
        more in 0..200_usize,
    ) {
        let settings = Autoscale::between(min, min + more);
        let mut scaler = scaler(settings);
        let (mut at, mut workers) = (Duration::ZERO, min);
        let mut changed: Option<Duration> = None;
        for (millis, sample) in samples {
            at += Duration::from_millis(millis);
            let Some(decision) = scaler.decide(&Sample { at, workers, ..sample }) else { continue };
            prop_assert_eq!(decision.from, workers);
            prop_assert!((min..=min + more).contains(&decision.to));
            let grows = decision.to > workers;
            let cooldown = if grows { settings.up_cooldown } else { settings.down_cooldown };
            prop_assert!(changed.is_none_or(|changed| at - changed >= cooldown));
            prop_assert!(decision.to != workers);
            prop_assert!(!grows || sample.queued > 0 && sample.busy >= settings.busy_share);
            prop_assert!(grows || sample.busy.is_nan() || sample.busy < settings.busy_share);
            (workers, changed) = (decision.to, Some(at));
        }
    }
}
