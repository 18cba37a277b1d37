//! The order of shares against the fair one (Q02), and what is remembered of them (Q10).

use proptest::prelude::*;

use super::{Limits, ShareQueue, ShareRate, Standing};

const MILLI: u64 = 1_000_000;

fn weight(weight: u32) -> Limits {
    Limits { weight, ..Limits::default() }
}

/// Workers that take what the shares give them, on their own clock.
struct Crew {
    shares: ShareQueue<u32, u64>,
    now: u64,
    /// The end of each worker's attempt, and its share.
    busy: Vec<Option<(u64, u32)>>,
    /// Time in hand of each share.
    had: Vec<u64>,
}

impl Crew {
    fn new(workers: usize, shares: usize) -> Self {
        let busy = vec![None; workers];
        let (shares, had) = (ShareQueue::new(Limits::default()), vec![0; shares]);
        Self { shares, now: 0, busy, had }
    }

    /// Every free worker takes an item; the item says how long it takes.
    fn start(&mut self) {
        for slot in 0..self.busy.len() {
            if self.busy[slot].is_none()
                && let Some(takes) = self.shares.pick(slot, self.now)
            {
                let share = *self.shares.in_hand_of(slot).unwrap_or(&u32::MAX);
                self.busy[slot] = Some((self.now + takes, share));
            }
        }
    }

    /// Advances to the next end of an attempt, or to this time.
    fn step(&mut self, most: u64) {
        let next = self.busy.iter().flatten().map(|(ends, _)| *ends).min().unwrap_or(most);
        let due = self.shares.next_due().unwrap_or(most);
        let next = next.min(due).min(most).max(self.now);
        for (_, share) in self.busy.iter().flatten() {
            self.had[*share as usize] += next - self.now;
        }
        self.now = next;
        self.shares.wake(next);
        for slot in 0..self.busy.len() {
            if self.busy[slot].is_some_and(|(ends, _)| ends <= next) {
                self.busy[slot] = None;
                self.shares.end(slot, next);
            }
        }
    }

    fn run(&mut self, until: u64) {
        while self.now < until {
            self.start();
            self.step(until);
        }
    }
}

#[test]
fn q02_a_share_has_its_part_by_weight_whatever_its_attempts_take() {
    let mut crew = Crew::new(4, 2);
    crew.shares.set(&1, Some(weight(3)), 0);
    for _ in 0..10_000 {
        crew.shares.add(&0, 7 * MILLI, false, 0);
        crew.shares.add(&1, 3 * MILLI, false, 0);
    }
    crew.run(1_000 * MILLI);
    assert!(crew.had[0].abs_diff(1_000 * MILLI) <= 4 * 7 * MILLI, "{:?}", crew.had);
}

#[test]
fn q02_what_is_not_started_costs_nothing() {
    let mut shares: ShareQueue<u32, u64> = ShareQueue::new(Limits::default());
    let rate = ShareRate { messages: 1, per: 1_000 * MILLI, burst: 1 };
    shares.set(&7, Some(Limits { rate: Some(rate), ..Limits::default() }), 0);
    shares.add(&7, 1, false, 0);
    shares.add(&7, 2, false, 0);
    assert_eq!(shares.pick(0, 5), Some(1));
    shares.not_started(0, 500);
    assert_eq!(shares.pick(0, 500), Some(2));
    let held = shares.view(&7, 500).map(|view| (view.held, view.in_hand));
    assert_eq!(held, Some((0, 1)));
}

#[test]
fn q06_one_attempt_probes_and_a_probe_that_was_not_started_is_due_again() {
    let mut shares: ShareQueue<u32, u64> = ShareQueue::new(Limits::default());
    for what in 0..3 {
        shares.add(&7, what, false, 0);
    }
    shares.hold(&7, 100, 0);
    assert_eq!((shares.pick(0, 99), shares.next_due()), (None, Some(100)));
    assert_eq!(shares.pick(0, 100), Some(0));
    assert_eq!(shares.pick(1, 100), None);
    assert_eq!(shares.view(&7, 100).map(|view| view.standing), Some(Standing::Probing));
    shares.not_started(0, 101);
    assert_eq!((shares.pick(0, 102), shares.pick(1, 102)), (Some(1), None));
    shares.end(0, 103);
    assert_eq!(shares.pick(1, 103), Some(2));
}

#[test]
fn q06_a_hold_during_the_probe_holds_again() {
    let mut shares: ShareQueue<u32, u64> = ShareQueue::new(Limits::default());
    for what in 0..3 {
        shares.add(&7, what, false, 0);
    }
    shares.hold(&7, 100, 0);
    assert_eq!(shares.pick(0, 100), Some(0));
    shares.hold(&7, 200, 150);
    shares.end(0, 151);
    assert_eq!(shares.pick(0, 199), None);
    assert_eq!((shares.pick(0, 200), shares.pick(1, 200)), (Some(1), None));
}

#[test]
fn q11_a_share_that_is_forgotten_between_its_attempts_keeps_its_time_in_hand() {
    let mut shares: ShareQueue<u32, u64> = ShareQueue::new(Limits::default());
    for attempt in 0..10 {
        let now = attempt * 100;
        shares.add(&7, attempt, false, now);
        assert_eq!(shares.pick(0, now), Some(attempt));
        assert_eq!(shares.in_hand().collect::<Vec<_>>(), [&7]);
        assert_eq!(shares.time_in_hand(now + 30), attempt * 50 + 30);
        shares.end(0, now + 50);
        shares.wake(now + 50);
        assert_eq!(shares.memory().0, 0, "nothing of it waits or is in hand");
    }
    shares.add(&7, 10, false, 1_000);
    assert_eq!(shares.view(&7, 1_000).map(|view| view.held), Some(500));
}

#[test]
fn q10_a_million_shares_at_once_leave_nothing() {
    let rate = ShareRate { messages: 10, per: 1_000 * MILLI, burst: 1 };
    let mut shares: ShareQueue<u32, u64> =
        ShareQueue::new(Limits { rate: Some(rate), ..Limits::default() });
    for name in 0..1_000_000 {
        shares.add(&name, 1, false, 0);
    }
    assert_eq!(shares.memory().0, 1_000_000);
    let mut now = 0;
    while shares.pick(0, now).is_some() {
        now += 1;
    }
    shares.end(0, now);
    shares.wake(now + 1_000 * MILLI);
    let (left, room) = shares.memory();
    assert!(left == 0 && room <= 128, "{left} shares, and room for {room}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the weights and the durations: two shares that always have something to start get
    /// the same time by weight, within a tenth and an attempt of each worker.
    #[test]
    fn q02_time_in_hand_follows_the_weights(
        weights in prop::collection::vec(1_u32..5, 2..6),
        typical in prop::collection::vec(2_u64..40, 6),
        spread in prop::collection::vec(1_u64..4, 500),
        workers in 1_usize..24,
        from in 0_u64..600,
    ) {
        let mut crew = Crew::new(workers, weights.len());
        for (share, each) in weights.iter().enumerate() {
            crew.shares.set(&(share as u32), Some(weight(*each)), 0);
        }
        let longest = typical.iter().max().copied().unwrap_or(1) * 4 * MILLI;
        for number in 0..30_000_usize {
            let share = number % weights.len();
            let takes = typical[share] * spread[(number / weights.len()) % spread.len()] * MILLI;
            crew.shares.add(&(share as u32), takes, false, 0);
        }
        crew.run(from * MILLI);
        let before = crew.had.clone();
        crew.run((from + 400) * MILLI);
        let window = |share: usize| (crew.had[share] - before[share]) / u64::from(weights[share]);
        for a in 0..weights.len() {
            for b in 0..a {
                let (of_a, of_b) = (window(a), window(b));
                let slack = of_a.max(of_b) / 10 + longest * workers as u64;
                prop_assert!(of_a.abs_diff(of_b) <= slack, "{:?} by {:?}", crew.had, weights);
            }
        }
    }

    /// Whatever the steps: each added item is taken once, and nothing is kept.
    #[test]
    fn q14_nothing_is_lost_and_nothing_is_left(
        steps in prop::collection::vec((0_u8..10, 0_u32..5, 0_usize..4, 0_u64..50), 1..300),
    ) {
        let mut shares: ShareQueue<u32, u64> = ShareQueue::new(Limits::default());
        let (mut now, mut added, mut taken) = (0, 0, Vec::new());
        let rate = ShareRate { messages: 3, per: 10, burst: 2 };
        for (what, share, slot, wait) in steps {
            now += wait;
            shares.wake(now);
            match what {
                0..=2 => {
                    shares.add(&share, added, what == 0, now);
                    added += 1;
                }
                3 | 4 => taken.extend(shares.pick(slot, now)),
                5 => shares.end(slot, now),
                6 => shares.hold(&share, now + wait, now),
                7 => shares.pause(&share, now),
                8 => shares.resume(&share, now),
                _ => {
                    let in_hand = Some(slot as u32);
                    let limits = Limits { weight: 1 + share, in_hand, rate: Some(rate) };
                    shares.set(&share, (slot > 0).then_some(limits), now);
                }
            }
            prop_assert!(shares.next_due().is_none_or(|due| due > now));
        }
        for share in 0..5 {
            shares.set(&share, None, now);
            shares.resume(&share, now);
        }
        while taken.len() < added as usize {
            let more = shares.pick(0, now);
            prop_assert!(more.is_some(), "{} of {added}", taken.len());
            taken.extend(more);
        }
        for slot in 0..4 {
            shares.end(slot, now);
        }
        taken.sort_unstable();
        prop_assert!(taken.iter().copied().eq(0..added));
        shares.wake(u64::MAX);
        prop_assert_eq!(shares.memory().0, 0);
    }
}
