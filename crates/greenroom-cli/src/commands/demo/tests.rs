use std::time::Duration;

use super::{arrivals::Arrivals, side::Side, *};

async fn played(slow_key: bool, seconds: u64) -> Show {
    let show = Show::new(slow_key, 7, Duration::from_secs(seconds));
    show.play().await.unwrap();
    show
}

#[test]
fn c14_a_seed_makes_the_same_arrivals() {
    let draw = |seed| Arrivals::draw(seed, Duration::from_secs(2), true);
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let count = draw(1).all.len();
    assert!((1_800..2_200).contains(&count), "{count} in 2 s");
    assert!(draw(1).all.is_sorted_by_key(|arrival| arrival.due));
    assert!(draw(1).hottest_part() > 0.1);
}

/// About a sixteenth: more would make hashing look worse than it is.
#[test]
fn c14_the_slow_key_shares_its_worker_with_as_many_as_any_other() {
    let arrivals = Arrivals::draw(1, Duration::from_secs(30), true);
    let others = || arrivals.all.iter().filter(|arrival| arrival.key != Some(arrivals::SLOW));
    let beside = others()
        .filter(|other| other.key.map(side::worker_of) == Some(side::worker_of(arrivals::SLOW)));
    let part = beside.count() as f64 / others().count() as f64;
    assert!((0.05..0.07).contains(&part), "{part} of all others share its worker");
}

#[tokio::test(start_paused = true)]
async fn c14_a_slow_key_holds_up_its_own_with_lanes_and_its_neighbours_with_hashing() {
    let show = played(true, 10).await;
    let p99 = |side: &Side| side.target.others.percentile(0.99).unwrap();
    let [lanes, hashing] = [&show.sides[0], &show.sides[1]];
    assert!(p99(lanes) < Duration::from_millis(30), "{:?}", p99(lanes));
    assert!(p99(hashing) > 10 * p99(lanes), "{:?} to {:?}", p99(hashing), p99(lanes));
    // The slow key takes what it takes, either way.
    let slow = |side: &Side| side.target.slow.percentile(0.5).unwrap();
    assert!(slow(lanes) >= target::SLOW_WORK && slow(hashing) >= target::SLOW_WORK);
}

#[tokio::test(start_paused = true)]
async fn c14_the_counters_are_counted_and_zero() {
    for slow_key in [true, false] {
        let show = played(slow_key, 5).await;
        let (table, defects) = last(&show);
        assert_eq!(defects, [""; 0], "{table}");
        for side in &show.sides {
            let counts = side.counts();
            assert_eq!(side.sent(), show.arrivals.all.len() as u64);
            assert_eq!((counts.handled, counts.lost, counts.out_of_order), (side.sent(), 0, 0));
            assert_eq!(counts.repeated, side.repeated_at_most());
            assert_eq!(counts.repeated == 0, slow_key, "a flaky target loses answers");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c14_what_is_lost_is_said_and_fails() {
    let show = Show::new(false, 7, Duration::from_secs(1));
    let side = &show.sides[0];
    side.play(&show.arrivals).await.unwrap();
    side.target.ledger.saw(1, 1_000_000);
    side.target.ledger.saw(1, 999_999);
    let (_, defects) = last(&show);
    assert_eq!(defects, ["lanes: 1 out of order"]);
}
