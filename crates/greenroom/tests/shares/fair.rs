//! Fair by time (Q01 to Q03).

use std::time::Duration;

use greenroom::{Envelope, SpawnError, Stop, policy::RoundRobin, shares::ShareLimits};

use super::clerk::{Attempt, Clerk, Job, flood, job, settle};

const SECOND: Stop = Stop::within(Duration::from_secs(1));

fn assert_near(a: Duration, b: Duration, slack: Duration) {
    let bound = a.max(b).mul_f64(0.1) + slack;
    assert!(a.abs_diff(b) <= bound, "{a:?} and {b:?} differ by more than {bound:?}");
}

#[tokio::test(start_paused = true)]
async fn q01_a_pool_without_keys_takes_turns_among_shares() {
    let clerk = Clerk::new();
    let pool = clerk.keyless(1).spawn().await.unwrap();
    flood(&pool, "acme", 50, 1).await;
    flood(&pool, "bolt", 3, 1).await;
    settle(7).await;
    let turns = clerk.tenants();
    assert_eq!(turns.iter().filter(|tenant| **tenant == "bolt").count(), 3, "{turns:?}");
    pool.stop(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn q01_messages_without_a_share_have_one_in_common() {
    let clerk = Clerk::new();
    let share = |job: &Job| (job.tenant != "none").then_some(job.tenant);
    let pool = clerk.keyed(1).shared_by(share).spawn().await.unwrap();
    flood(&pool, "none", 50, 1).await;
    flood(&pool, "bolt", 3, 1).await;
    settle(7).await;
    assert_eq!(clerk.counts()["bolt"], 3);
    pool.stop(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn q02_time_in_hand_is_divided_however_many_messages_a_share_has() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(64).spawn().await.unwrap();
    flood(&pool, "acme", 50_000, 5).await;
    flood(&pool, "bolt", 20_000, 5).await;
    settle(1_000).await;
    for (from, to) in [(0, 1_000), (100, 200), (500, 1_000)] {
        let of = |tenant| clerk.in_hand(tenant, from, to);
        assert_near(of("acme"), of("bolt"), Duration::from_millis(64 * 5));
    }
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_a_share_of_slow_messages_has_no_more_time_than_one_of_quick_ones() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(16).spawn().await.unwrap();
    flood(&pool, "slow", 1_000, 400).await;
    flood(&pool, "quick", 60_000, 2).await;
    settle(10_000).await;
    let of = |tenant| clerk.in_hand(tenant, 0, 10_000);
    assert_near(of("slow"), of("quick"), Duration::from_millis(400));
    let of = |tenant| clerk.in_hand(tenant, 4_000, 5_000);
    assert_near(of("slow"), of("quick"), Duration::from_millis(400));
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_weights_divide_the_time() {
    let clerk = Clerk::new();
    let weight = |weight| ShareLimits::default().weight(weight);
    let pool = clerk.keyed(16).share("paid", weight(3)).share_limits(weight(1)).spawn().await;
    let pool = pool.unwrap();
    flood(&pool, "free", 10_000, 5).await;
    flood(&pool, "paid", 20_000, 5).await;
    settle(2_000).await;
    let (free, paid) = (clerk.in_hand("free", 0, 2_000), clerk.in_hand("paid", 0, 2_000));
    assert_near(free * 3, paid, Duration::from_millis(3 * 16 * 5));
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_a_share_back_from_idle_begins_at_the_present_and_has_saved_nothing_up() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(4).spawn().await.unwrap();
    pool.call(job("late", 1, 5)).await.unwrap();
    flood(&pool, "acme", 5_000, 5).await;
    settle(2_000).await;
    let before = clerk.in_hand("late", 0, 3_000);
    flood(&pool, "late", 5_000, 5).await;
    settle(500).await;
    let (acme, late) = (clerk.in_hand("acme", 2_010, 2_510), clerk.in_hand("late", 2_010, 2_510));
    assert_near(acme, late, Duration::from_millis(4 * 5));
    assert_eq!(before, Duration::from_millis(5));
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_a_share_whose_only_key_is_busy_gives_its_weight_to_others() {
    let clerk = Clerk::new();
    let heavy = ShareLimits::default().weight(100);
    let pool = clerk.keyed(8).share("one", heavy).spawn().await.unwrap();
    for _ in 0..100 {
        pool.send(job("one", 1, 10)).await.unwrap();
    }
    flood(&pool, "acme", 5_000, 10).await;
    settle(500).await;
    assert_eq!(clerk.most_in_hand("one"), 1);
    assert!(clerk.in_hand("one", 0, 500) >= Duration::from_millis(480), "its key has its turn");
    assert!(clerk.in_hand("acme", 0, 500) >= Duration::from_millis(7 * 480));
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_attempts_that_are_cancelled_fail_or_time_out_are_charged() {
    let clerk = Clerk::new();
    let limit = Duration::from_millis(5);
    let pool = clerk.keyed(4).time_limit(limit).dead_letters(0).spawn().await.unwrap();
    flood(&pool, "hangs", 3_000, 1_000_000).await;
    flood(&pool, "acme", 3_000, 4).await;
    settle(1_000).await;
    assert_near(
        clerk.in_hand("acme", 0, 1_000),
        limit * clerk.counts()["hangs"] as u32,
        Duration::from_millis(20),
    );
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q02_handlers_that_take_no_time_take_turns_as_well() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(1).spawn().await.unwrap();
    flood(&pool, "acme", 500, 0).await;
    flood(&pool, "bolt", 10, 0).await;
    settle(1).await;
    let turns = clerk.tenants();
    let last = turns.iter().rposition(|tenant| *tenant == "bolt").unwrap();
    let first = turns.iter().position(|tenant| *tenant == "bolt").unwrap();
    assert!(last - first <= 20, "{first} to {last}");
    assert_eq!(turns.len(), 510);
    pool.stop(SECOND).await;
}

/// 99 shares with ten messages a second each for two seconds, next to a flood of this many
/// messages: the 99th percentile of the others' time from sent to done.
async fn p99_beside(clerk: &Clerk, many: u64) -> Duration {
    let pool = clerk.keyed(64).spawn().await.unwrap();
    flood(&pool, "flood", many, 5).await;
    let others: Vec<&'static str> = (0..99).map(|n| &*format!("other-{n}").leak()).collect();
    for number in 0..2_000 {
        if let Some(tenant) = others.get(number % 100) {
            let job = job(tenant, (number % 100) as u64, 5);
            pool.send(Job { number: number as u32, ..job }).await.unwrap();
        }
        settle(1).await;
    }
    pool.stop(Stop::Now).await;
    let ended = clerk.attempts().into_iter().filter(|of| of.job.tenant != "flood");
    let took = |of: Attempt| Some(of.ended? - Duration::from_millis(of.job.number.into()));
    let mut took: Vec<_> = ended.filter_map(took).collect();
    assert!(took.len() > 1_970, "{}", took.len());
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

#[tokio::test(start_paused = true)]
async fn q13_a_flood_delays_the_others_by_no_more_than_an_attempt_and_has_what_they_leave() {
    let alone = p99_beside(&Clerk::new(), 0).await;
    let clerk = Clerk::new();
    let beside = p99_beside(&clerk, 40_000).await;
    assert!(beside <= 2 * alone, "{beside:?}, and {alone:?} without the flood");
    // 64 workers, of which the others need five.
    let flood = clerk.in_hand("flood", 0, 2_000);
    assert!(flood >= Duration::from_secs(2) * 58, "{flood:?}");
}

#[tokio::test(start_paused = true)]
async fn q03_no_worker_rests_while_a_share_has_something_to_start() {
    let clerk = Clerk::new();
    let capped = ShareLimits::default().in_hand(2);
    let pool = clerk.keyed(10).share("acme", capped).spawn().await.unwrap();
    flood(&pool, "acme", 500, 10).await;
    flood(&pool, "bolt", 800, 10).await;
    settle(1_001).await;
    let (acme, bolt) = (clerk.in_hand("acme", 0, 1_000), clerk.in_hand("bolt", 0, 1_000));
    assert_eq!(acme, Duration::from_secs(2));
    assert_eq!(bolt, Duration::from_secs(8));
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q05_shares_are_refused_where_messages_are_pushed() {
    let clerk = Clerk::new();
    let sticky = clerk.keyless(2).sticky_by(|job: &Job| job.key).spawn().await;
    assert!(matches!(sticky, Err(SpawnError::SharesArePulled { .. })));
    let pushed = clerk.keyless(2).dispatch(RoundRobin::new()).spawn().await;
    assert!(matches!(pushed, Err(SpawnError::SharesArePulled { .. })));
}

#[tokio::test(start_paused = true)]
async fn q05_shares_that_are_named_before_the_order_are_refused_with_the_next_step() {
    let pool = Clerk::new().keyless(2).ordered_by(|job: &Job| job.key).spawn().await;
    let error = pool.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.ends_with("which replaces it: say `shared_by` after it"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn q01_an_urgent_message_comes_first_within_its_share() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(1).spawn().await.unwrap();
    flood(&pool, "acme", 20, 1).await;
    let urgent = Job { number: 9, ..job("acme", 1, 1) };
    pool.send_with(urgent, Envelope::urgent()).await.unwrap();
    settle(3).await;
    let place = clerk.attempts().iter().position(|attempt| attempt.job.number == 9);
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
    pool.stop(SECOND).await;
}
