use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, mpsc},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::*;

type Told = Arc<Mutex<Vec<Settled>>>;

struct Log(Told);

impl Settle for Log {
    fn settled(&self, how: Settled) {
        self.0.lock().unwrap().push(how);
    }
}

struct Panics(Told);

impl Settle for Panics {
    fn settled(&self, how: Settled) {
        self.0.lock().unwrap().push(how);
        panic!("a source that cannot bear it");
    }
}

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);
const DROPPED: Settled = Settled::Refused(Refusal::Dropped);

fn settlement() -> (Ack, Told) {
    let log = Told::default();
    (Ack::new(Log(log.clone())), log)
}

fn told(log: &Told) -> Vec<Settled> {
    log.lock().unwrap().clone()
}

#[test]
fn m03_is_acknowledged_once_when_every_part_is_confirmed() {
    let (root, log) = settlement();
    let (a, b) = (root.child(), root.child());
    root.confirm();
    a.confirm();
    assert!(told(&log).is_empty());
    b.confirm();
    assert_eq!(told(&log), [HANDLED]);
}

#[test]
fn m03_one_dropped_part_refuses_the_event_once_as_dropped() {
    let (root, log) = settlement();
    let (a, b) = (root.child(), root.child());
    drop(a);
    b.set_outcome(Outcome::DeadLettered);
    b.confirm();
    root.confirm();
    assert_eq!(told(&log), [DROPPED]);
}

#[test]
fn m03_a_refusal_tells_its_reason_and_the_gravest_of_several_in_any_order() {
    let (root, log) = settlement();
    root.refuse(Refusal::PoolFull);
    assert_eq!(told(&log), [Settled::Refused(Refusal::PoolFull)]);
    for swapped in [false, true] {
        let (root, log) = settlement();
        let mut parts = [Some(root.child()), Some(root)];
        let (first, second) = if swapped { (1, 0) } else { (0, 1) };
        for place in [first, second] {
            match (place, parts[place].take()) {
                (0, Some(part)) => drop(part),
                (_, Some(part)) => part.refuse(Refusal::NotStored),
                _ => unreachable!(),
            }
        }
        assert_eq!(told(&log), [Settled::Refused(Refusal::NotStored)]);
    }
}

#[test]
fn m03_fires_once_when_the_holder_panics() {
    let (root, log) = settlement();
    let child = root.child();
    let _ = catch_unwind(AssertUnwindSafe(move || {
        let _held = child;
        panic!("boom");
    }));
    root.confirm();
    assert_eq!(told(&log), [DROPPED]);
}

#[test]
fn m03_fires_once_when_who_is_told_panics() {
    let log = Told::default();
    Ack::new(Panics(log.clone())).confirm();
    assert_eq!(told(&log), [HANDLED]);
}

/// Without containment this ends the process: a panic within the unwinding of another.
#[test]
fn m03_fires_once_when_the_last_holder_and_who_is_told_both_panic() {
    let log = Told::default();
    let ack = Ack::new(Panics(log.clone()));
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _held = ack;
        panic!("boom");
    }));
    assert!(caught.is_err());
    assert_eq!(told(&log), [DROPPED]);
}

#[test]
fn the_outcome_of_an_acknowledgement_is_what_was_set() {
    let (root, log) = settlement();
    root.set_outcome(Outcome::Ignored);
    root.confirm();
    assert_eq!(told(&log), [Settled::Acknowledged(Outcome::Ignored)]);
}

#[test]
fn m03_every_state_stands_for_what_it_was_written_for() {
    for outcome in [Outcome::Handled, Outcome::DeadLettered, Outcome::Ignored] {
        assert_eq!(Settled::from_state(outcome as u8), Settled::Acknowledged(outcome));
    }
    let refusals = [
        Refusal::Dropped,
        Refusal::NoHandler,
        Refusal::PoolFull,
        Refusal::NotStored,
        Refusal::HandlerRejected,
        Refusal::Handler,
    ];
    for refusal in refusals {
        assert_eq!(Settled::from_state(refusal as u8), Settled::Refused(refusal));
    }
}

#[test]
fn m03_who_watches_is_told_once_before_the_source_and_keeps_nothing_open() {
    let (root, log) = settlement();
    let watch = root.watch();
    let seen = Told::default();
    for _ in 0..2 {
        let (seen, log) = (seen.clone(), log.clone());
        assert!(watch.when_settled(move |how| {
            assert!(log.lock().unwrap().is_empty());
            seen.lock().unwrap().push(how);
        }));
    }
    assert!(watch.when_settled(|_| panic!("one who watches")));
    root.confirm();
    assert_eq!((told(&log), told(&seen)), (vec![HANDLED], vec![HANDLED, HANDLED]));
    assert!(!watch.when_settled(|_| ()), "forgotten");
    assert!(!Ack::detached().watch().when_settled(|_| ()));
}

#[test]
fn m03_who_watches_too_late_is_told_at_once() {
    let (root, _log) = settlement();
    let (watch, shared) = (root.watch(), root.shared.clone());
    drop(root);
    let seen = Told::default();
    let late = seen.clone();
    assert!(watch.when_settled(move |how| late.lock().unwrap().push(how)));
    assert_eq!(told(&seen), [DROPPED]);
    drop(shared);
}

/// Parts go, are divided and watched on four threads at once. What comes of it is known
/// beforehand, as the gravest counts.
#[test]
fn m03_fires_exactly_once_on_real_threads() {
    for seed in 0..400 {
        let (root, log) = settlement();
        let watch = root.watch();
        let parts: Vec<Ack> = (0..4).map(|_| root.child()).collect();
        let (seen, gravest) = (Told::default(), Arc::new(Mutex::new(0)));
        root.confirm();
        std::thread::scope(|scope| {
            for (thread, part) in parts.into_iter().enumerate() {
                let (watch, seen, gravest) = (watch.clone(), seen.clone(), gravest.clone());
                scope.spawn(move || {
                    let rng = StdRng::seed_from_u64(seed * 4 + thread as u64);
                    let late = seen.clone();
                    watch.when_settled(move |how| late.lock().unwrap().push(how));
                    let worst = settle_part(part, rng);
                    let mut gravest = gravest.lock().unwrap();
                    *gravest = worst.max(*gravest);
                });
            }
        });
        let expected = Settled::from_state(*gravest.lock().unwrap());
        assert_eq!(told(&log), [expected], "seed {seed}");
        assert!(told(&seen).iter().all(|how| *how == expected), "seed {seed}");
    }
}

/// Divides a part and settles what comes of it; the gravest state that was asked for.
fn settle_part(part: Ack, mut rng: StdRng) -> u8 {
    let mut parts = vec![part];
    let mut worst = 0;
    while let Some(part) = parts.pop() {
        match rng.random_range(0..12) {
            0..4 => parts.extend([part.child(), part]),
            4..9 => part.confirm(),
            9 => {
                part.set_outcome(Outcome::Ignored);
                part.confirm();
                worst = worst.max(2);
            }
            10 => {
                drop(part);
                worst = worst.max(3);
            }
            _ => {
                part.refuse(Refusal::PoolFull);
                worst = worst.max(5);
            }
        }
    }
    worst
}

/// A settlement that is a part of another.
struct Inside(parking_lot::Mutex<Option<Ack>>);

impl Settle for Inside {
    fn part_of(&self) -> Option<Watch> {
        self.0.lock().as_ref().map(Ack::watch)
    }

    fn settled(&self, how: Settled) {
        match (self.0.lock().take(), how) {
            (Some(outer), Settled::Acknowledged(_)) => outer.confirm(),
            (outer, Settled::Refused(_)) => drop(outer),
            (None, _) => {}
        }
    }
}

impl Inside {
    fn of(outer: Ack) -> Ack {
        Ack::new(Self(parking_lot::Mutex::new(Some(outer))))
    }
}

#[test]
fn g03_a_watch_knows_what_its_settlement_is_a_part_of() {
    let (event, _) = settlement();
    let (first, other) = (Inside::of(event.child()), Inside::of(event.child()));
    let second = Inside::of(first.child());
    let watches = [&event, &first, &other, &second].map(Ack::watch);
    let parts = [(1, 0), (2, 0), (3, 0), (3, 1)];
    for part in 0..watches.len() {
        for whole in 0..watches.len() {
            let is_part = watches[part].is_part_of(&watches[whole]);
            assert_eq!(is_part, parts.contains(&(part, whole)), "{part} of {whole}");
        }
    }
    drop((event, first, other, second));
    assert!(!watches[3].is_part_of(&watches[0]), "it is settled");
}

#[test]
fn g03_settlements_that_follow_one_another_wait_in_no_circle() {
    let events: [_; 3] = std::array::from_fn(|_| settlement());
    let parts = [0, 1, 2].map(|at| Inside::of(events[at].0.child()));
    let follow = |part: usize, of: usize| parts[part].watch().follow(&events[of].0.watch());
    assert_eq!(follow(0, 1), Following::Not, "nothing of it came back in");
    events.iter().for_each(|(event, _)| event.child_sent_back().confirm());
    assert_eq!([follow(0, 1), follow(1, 2)], [Following::Waits; 2]);
    assert_eq!([follow(2, 0), follow(1, 0), follow(2, 2)], [Following::IsPart; 3]);
    parts.into_iter().for_each(Ack::confirm);
    let logs = events.map(|(event, log)| {
        event.confirm();
        log
    });
    assert!(logs.iter().all(|log| told(log) == [HANDLED]));
}

#[test]
fn g03_an_event_that_came_back_a_hundred_thousand_times_is_settled_in_one_stack() {
    for is_confirmed in [true, false] {
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        struct Tell(Arc<parking_lot::Mutex<Vec<Settled>>>);
        impl Settle for Tell {
            fn settled(&self, how: Settled) {
                self.0.lock().push(how);
            }
        }
        let mut innermost = Ack::new(Tell(told.clone()));
        for _ in 0..100_000 {
            innermost = Inside::of(innermost);
        }
        let settle = move || if is_confirmed { innermost.confirm() } else { drop(innermost) };
        std::thread::Builder::new().stack_size(128 << 10).spawn(settle).unwrap().join().unwrap();
        let expected = match is_confirmed {
            true => Settled::Acknowledged(Outcome::Handled),
            false => Settled::Refused(Refusal::Dropped),
        };
        assert_eq!(*told.lock(), [expected]);
    }
}

/// Notes what is rejected, where it takes that.
struct Rejecting(bool, mpsc::Sender<Result<Settled, String>>);

impl Settle for Rejecting {
    fn settled(&self, how: Settled) {
        self.1.send(Ok(how)).unwrap();
    }

    fn rejected(&self, why: String) -> bool {
        self.1.send(Err(why)).unwrap();
        self.0
    }
}

#[test]
fn d13_a_rejected_part_is_told_first_and_refuses_only_where_nothing_follows_from_it() {
    let not_stored = Settled::Refused(Refusal::NotStored);
    for (takes, ends) in [(true, Settled::Acknowledged(Outcome::Handled)), (false, not_stored)] {
        let (tell, told) = mpsc::channel();
        let event = Ack::new(Rejecting(takes, tell));
        let (stored, rejected) = (event.child(), event.child());
        rejected.reject("never");
        event.confirm();
        assert_eq!(told.try_recv().unwrap(), Err("never".to_owned()));
        assert!(told.try_recv().is_err(), "a part is open");
        stored.confirm();
        assert_eq!(told.try_recv().unwrap(), Ok(ends));
    }
    Ack::detached().reject("nobody hears of it");
}

#[test]
fn what_is_lent_says_nothing_once_it_is_taken_back() {
    let told = Told::default();
    let event = Ack::new(Log(told.clone()));
    let (borrowed, lent) = event.child().lend();
    lent.take_back().unwrap().confirm();
    drop(borrowed);
    let (borrowed, lent) = event.child().lend();
    borrowed.confirm();
    assert!(lent.take_back().is_none(), "it is settled");
    let (borrowed, _) = event.child().lend();
    borrowed.confirm();
    assert!(told.lock().unwrap().is_empty(), "a part is open");
    event.confirm();
    assert_eq!(*told.lock().unwrap(), [HANDLED]);
}

#[test]
fn what_is_lent_and_dropped_or_rejected_refuses() {
    let settled = |settle: fn(Ack)| {
        let told = Told::default();
        let (borrowed, _) = Ack::new(Log(told.clone())).lend();
        settle(borrowed);
        let told = told.lock().unwrap();
        told.clone()
    };
    assert_eq!(settled(drop), [DROPPED]);
    assert_eq!(settled(|ack| ack.reject("never")), [Settled::Refused(Refusal::NotStored)]);
}
