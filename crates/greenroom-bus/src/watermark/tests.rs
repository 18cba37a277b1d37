use super::{open::OpenSet, *};

/// Assigned from position 1 on, with these received.
fn received(positions: impl IntoIterator<Item = u64>) -> (Watermark, Epoch) {
    let mut watermark = Watermark::default();
    let epoch = watermark.assign(&Positions::starting_at(1));
    for position in positions {
        assert_eq!(watermark.receive(position), Received::New);
    }
    (watermark, epoch)
}

fn stored(watermark: &Watermark) -> Positions {
    watermark.snapshot().unwrap().positions().clone()
}

#[test]
fn f01_the_lowest_open_position_is_committed_with_what_is_settled_beyond_it() {
    let (mut watermark, epoch) = received(1..=10);
    for settled in [1, 2, 4, 6, 7, 9] {
        assert_eq!(watermark.settle(epoch, settled), Told::Counted);
    }
    let positions = stored(&watermark);
    assert_eq!((positions.lowest(), positions.next()), (3, 11));
    assert_eq!(positions.open(), [3..4, 5..6, 8..9, 10..11]);
    assert_eq!(positions.done().collect::<Vec<_>>(), [4..5, 6..8, 9..10]);
    assert_eq!((positions.count_open(), positions.count_done()), (4, 4));
    let done: Vec<_> = (0..14).filter(|position| positions.is_done(*position)).collect();
    assert_eq!(done, [0, 1, 2, 4, 6, 7, 9]);
}

#[test]
fn f01_positions_that_were_never_received_are_not_waited_for() {
    let (mut watermark, epoch) = received([3, 7, 1_000_000_007]);
    watermark.settle(epoch, 3);
    assert_eq!(watermark.lowest(), 7);
    watermark.settle(epoch, 7);
    assert_eq!(watermark.lowest(), 1_000_000_007);
    watermark.settle(epoch, 1_000_000_007);
    assert_eq!(stored(&watermark), Positions::starting_at(1_000_000_008));
}

#[test]
fn d01_a_refused_event_stays_open_until_it_is_delivered_again_and_settled() {
    let (mut watermark, epoch) = received(1..=3);
    watermark.settle(epoch, 1);
    assert_eq!(watermark.refuse(epoch, 2), Told::Counted);
    watermark.settle(epoch, 3);
    assert_eq!((watermark.lowest(), watermark.open(), watermark.in_hand()), (2, 1, 0));
    assert_eq!(watermark.settle(epoch, 2), Told::NotInHand, "nobody has it");
    assert_eq!(watermark.receive(2), Received::New);
    assert_eq!(watermark.settle(epoch, 2), Told::Counted);
    assert_eq!(watermark.lowest(), 4);
}

#[test]
fn z08_what_is_delivered_again_is_never_in_hand_twice() {
    let (mut watermark, epoch) = received(1..=4);
    watermark.settle(epoch, 2);
    watermark.refuse(epoch, 3);
    let again: Vec<_> = (1..=4).map(|position| watermark.receive(position)).collect();
    assert_eq!(again, [Received::InHand, Received::Done, Received::New, Received::InHand]);
    let Counts { skipped, doubled, .. } = watermark.counts();
    assert_eq!((skipped, doubled), (1, 2));
}

#[test]
fn d12_a_result_of_an_epoch_that_has_ended_is_fenced_and_counted() {
    let (mut watermark, old) = received(1..=2);
    let positions = stored(&watermark);
    let epoch = watermark.assign(&positions);
    assert!(epoch > old);
    assert_eq!(watermark.receive(1), Received::New);
    assert_eq!(watermark.settle(old, 1), Told::Fenced);
    assert_eq!(watermark.refuse(old, 1), Told::Fenced);
    assert_eq!((watermark.in_hand(), watermark.counts().fenced), (1, 2));
    watermark.revoke();
    assert_eq!(watermark.settle(epoch, 1), Told::Fenced);
    assert_eq!((watermark.receive(2), watermark.snapshot()), (Received::NotAssigned, None));
}

#[test]
fn f02_a_commit_counts_only_once_it_is_confirmed_for_its_epoch() {
    let (mut watermark, epoch) = received(1..=4);
    watermark.settle(epoch, 1);
    let first = watermark.snapshot().unwrap();
    watermark.settle(epoch, 2);
    assert_eq!(watermark.repeated_at_most(), 4, "two are open, two are settled and not stored");
    assert!(watermark.confirm(&first));
    assert_eq!(watermark.repeated_at_most(), 3);
    let second = watermark.snapshot().unwrap();
    watermark.assign(first.positions());
    assert!(!watermark.confirm(&second), "its epoch has ended");
    assert_eq!(watermark.counts().fenced_commits, 1);
    assert_eq!(watermark.repeated_at_most(), 3, "what the new epoch expects");
}

#[test]
fn d01_what_an_assignment_remembers_as_open_holds_the_lowest_position_before_it_has_come() {
    let mut watermark = Watermark::default();
    let from = Positions::new(20, [5..7, 12..13]).unwrap();
    let epoch = watermark.assign(&from);
    assert_eq!(stored(&watermark), from, "nothing has come, so nothing has changed");
    assert_eq!(watermark.receive(4), Received::Done);
    assert_eq!(watermark.receive(5), Received::New);
    watermark.settle(epoch, 5);
    assert_eq!((watermark.lowest(), watermark.open()), (6, 2));
    assert_eq!(watermark.receive(12), Received::New, "and 6 is gone from its source");
    assert_eq!(watermark.receive(13), Received::Done);
    watermark.settle(epoch, 12);
    assert_eq!((watermark.lowest(), watermark.counts().gone), (20, 1));
}

#[test]
fn f03_ranges_of_a_foreign_hand_are_refused() {
    assert!(Positions::new(10, [1..3, 3..4, 9..10]).is_ok());
    let wrong = [(0..1, 3..3), (5..6, 2..3), (2..5, 4..6), (0..1, 9..11)];
    for (good, wrong) in wrong {
        let error = Positions::new(10, [good, wrong.clone()]).unwrap_err();
        assert_eq!(error.range, wrong);
    }
}

/// One event is stuck, a million are handled, a thousand at a time and in no order.
#[test]
fn f01_memory_is_that_of_what_is_open() {
    let (mut watermark, epoch) = received([1]);
    let mut most = 0;
    for thousand in 1..1_000_u64 {
        let positions = thousand * 1_000..(thousand + 1) * 1_000;
        for position in positions.clone() {
            assert_eq!(watermark.receive(position), Received::New);
        }
        for position in positions {
            let mixed = thousand * 1_000 + position * 7 % 1_000;
            assert_eq!(watermark.settle(epoch, mixed), Told::Counted);
        }
        most = most.max(watermark.open.room());
    }
    assert!(most <= 256, "{most} blocks for a thousand open positions");
    assert_eq!(stored(&watermark).open().len(), 1);
}

#[test]
fn memory_of_a_burst_is_given_back() {
    let mut open = OpenSet::default();
    (0..1_000_000).for_each(|position| open.push(position));
    let most = open.room();
    (1..1_000_000).for_each(|position| open.remove(position));
    assert!(most > 15_000 && open.room() < 300, "{most}, then {}", open.room());
    assert_eq!(open.ranges().flatten().collect::<Vec<_>>(), [0]);
}

/// Positions far apart, so that blocks become hollow in the middle and are taken out.
#[test]
fn a_set_of_open_positions_is_what_a_map_says() {
    use std::collections::BTreeMap;

    use rand::{RngExt, SeedableRng, rngs::StdRng};

    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut open, mut map, mut next) = (OpenSet::default(), BTreeMap::new(), 0_u64);
        for step in 0..3_000 {
            // Waves: it fills, then it empties.
            let grows = random.random_ratio(if step / 500 % 2 == 0 { 3 } else { 1 }, 4);
            if grows || map.is_empty() {
                next += random.random_range(1..200);
                open.push(next);
                map.insert(next, true);
                continue;
            }
            let from = random.random_range(0..=next);
            let Some((&position, &in_hand)) = map.range(from..).next() else { continue };
            match (in_hand, random.random_range(0..4)) {
                (true, 0) => {
                    open.refuse(position);
                    map.insert(position, false);
                }
                (true, _) => {
                    open.remove(position);
                    map.remove(&position);
                }
                (false, _) => {
                    open.take(position);
                    map.insert(position, true);
                }
            }
            assert_eq!(open.lowest(), map.keys().next().copied(), "seed {seed}, step {step}");
            assert_eq!(open.in_hand(), map.values().filter(|in_hand| **in_hand).count());
            assert!(open.room() <= 8 * (16 + 2 * (map.len() + 17)), "{}", open.room());
            let state = |position| match map.get(&position) {
                None => State::NotOpen,
                Some(true) => State::InHand,
                Some(false) => State::Refused,
            };
            for position in [position, from, next] {
                assert_eq!(open.state(position), state(position), "seed {seed}, step {step}");
            }
        }
        let listed: Vec<u64> = open.ranges().flatten().collect();
        assert_eq!(listed, map.into_keys().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn f01_behind_the_last_record_a_position_moves_and_what_is_open_stays_open() {
    let mut watermark = Watermark::default();
    let epoch = watermark.assign(&Positions::new(20, [3..4, 12..14]).unwrap());
    assert_eq!(watermark.receive(3), Received::New);
    watermark.pass(30);
    assert_eq!((watermark.lowest(), watermark.next(), watermark.counts().gone), (3, 30, 2));
    assert_eq!(watermark.receive(25), Received::Done, "nobody is given it");
    watermark.settle(epoch, 3);
    watermark.pass(10);
    assert_eq!((watermark.lowest(), watermark.next()), (30, 30));
    assert_eq!(watermark.snapshot().unwrap().positions(), &Positions::starting_at(30));
    watermark.revoke();
    watermark.pass(40);
    assert_eq!(watermark.next(), 0, "it is assigned no more");
}
