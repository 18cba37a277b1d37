use std::time::Duration;

use tokio::time::timeout;

use super::{
    load::{MOST_OF_KEY, SLOW},
    play::Playground,
    settings::PlaySettings,
    view::view,
    window::WindowFigures,
};

/// So long on virtual time, with these settings.
async fn played(settings: PlaySettings, seconds: u64) -> Playground {
    let playground = Playground::new(7).await.unwrap();
    playground.change(settings).unwrap();
    let _ = timeout(Duration::from_secs(seconds), playground.play(7)).await;
    playground
}

impl Playground {
    /// Of lanes, and of hashing.
    fn figures(&self) -> [WindowFigures; 2] {
        self.sides().each_ref().map(|side| side.target.figures())
    }

    /// The p99 of cold keys, in the same order.
    fn p99(&self) -> [Duration; 2] {
        self.figures().map(|figures| figures.p99.unwrap())
    }

    fn assert_orderly(&self) {
        for side in self.sides() {
            let counts = side.target.counts();
            assert!(counts.handled > 0);
            assert_eq!((counts.lost, counts.out_of_order, counts.repeated), (0, 0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_slow_key_delays_cold_keys_with_hashing_and_not_with_lanes() {
    let slow = PlaySettings { slow_ms: 300.0, ..Default::default() };
    let playground = played(slow, 20).await;
    let [lanes, hashing] = playground.p99();
    assert!(hashing > 5 * lanes, "lanes {lanes:?}, hashing {hashing:?}");
    let [lanes, hashing] = playground.figures();
    assert!(lanes.per_second > 350.0 && hashing.per_second > 300.0, "{lanes:?} {hashing:?}");
    playground.assert_orderly();
}

/// About an eighth: more would make hashing look worse than it is.
#[tokio::test(start_paused = true)]
async fn c14_the_slow_key_of_the_playground_shares_its_worker_with_as_many_as_any_other() {
    let playground = played(PlaySettings::default(), 20).await;
    let hashing = &playground.sides()[1];
    let slot = loop {
        let hands = hashing.target.hands();
        if let Some((slot, _)) = hands.into_iter().find(|(_, hand)| hand.key == SLOW) {
            break slot;
        }
        let _ = timeout(Duration::from_millis(50), playground.play(8)).await;
    };
    let workers = hashing.workers();
    let all: u64 = workers.iter().map(|worker| worker.handled).sum();
    let own = workers.iter().find(|worker| worker.slot == slot).unwrap().handled;
    let part = own as f64 / all as f64;
    assert!((0.08..0.17).contains(&part), "{part} of all events share its worker");
    assert_eq!(hashing.target.turned_away(), 0);
}

#[tokio::test(start_paused = true)]
async fn c14_without_slow_keys_both_pools_are_quick() {
    let calm = PlaySettings { slow_percent: 0.0, ..Default::default() };
    let playground = played(calm, 20).await;
    let [lanes, hashing] = playground.p99();
    assert!(lanes < Duration::from_millis(50) && hashing < Duration::from_millis(150));
    playground.assert_orderly();
}

#[tokio::test(start_paused = true)]
async fn c14_a_retry_holds_up_its_key_with_lanes_and_its_worker_with_hashing() {
    let failing = PlaySettings { slow_percent: 0.0, failure_percent: 10.0, ..Default::default() };
    let playground = played(failing, 20).await;
    let [lanes, hashing] = playground.figures();
    // Most events never fail, and with lanes they do not notice.
    assert!(lanes.p50.unwrap() < Duration::from_millis(30), "{lanes:?}");
    assert!(hashing.p50 > lanes.p50.map(|p50| p50 * 5), "{lanes:?} {hashing:?}");
    assert!(playground.sides().iter().all(|side| side.target.failed() > 100));
    playground.assert_orderly();
}

#[tokio::test(start_paused = true)]
async fn c14_a_flooding_tenant_delays_others_without_shares_and_not_with_them() {
    let p99 = async |shares| {
        let calm = PlaySettings { slow_percent: 0.0, ..Default::default() };
        let playground = played(PlaySettings { flood: 2_000.0, shares, ..calm }, 20).await;
        playground.assert_orderly();
        playground.p99()[0]
    };
    let (with, without) = (p99(1.0).await, p99(0.0).await);
    assert!(without > 5 * with, "with shares {with:?}, without {without:?}");
}

#[tokio::test(start_paused = true)]
async fn c14_settings_change_both_pools_while_they_work() {
    let playground = played(PlaySettings::default(), 5).await;
    for workers in [32.0, 1.0, 4.0] {
        let settings = PlaySettings { workers, ..Default::default() };
        playground.change(settings).unwrap();
        let _ = timeout(Duration::from_secs(10), playground.play(workers as u64)).await;
        for side in playground.sides() {
            assert_eq!(side.workers().len(), workers as usize, "{:?}", side.queueing);
        }
    }
    playground.assert_orderly();
}

#[tokio::test(start_paused = true)]
async fn c14_the_state_is_small_under_any_load() {
    let worst = PlaySettings {
        workers: 32.0,
        slow_percent: 5.0,
        slow_ms: 2_000.0,
        failure_percent: 20.0,
        flood: 2_000.0,
        ..Default::default()
    };
    let playground = played(worst, 15).await;
    let state = view(&playground).to_string();
    assert!(state.len() < 10_000, "{} bytes", state.len());
    for side in playground.sides() {
        assert!(side.target.waiting(1).longest[0].1 <= MOST_OF_KEY);
        assert!(side.target.turned_away() > 0);
    }
    playground.assert_orderly();
}
