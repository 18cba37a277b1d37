//! The state of a key, in a sentence (C13).

use std::{fmt::Write, time::Duration};

use greenroom::{
    keys::KeyState,
    shares::{Share, ShareState, ShareStatus},
};
use greenroom_bus::engine::{KeyView, OutageView};
use tokio::time::Instant;

use super::shares;

/// For example `17 waiting; head attempt 4 of 10, next in 8.1 s, last error: 503 after 12 ms`.
/// `held_by`: the output that the workers of its pool wait for.
pub(super) fn compose(key: &KeyView, outage: Option<&OutageView>, held_by: Option<&str>) -> String {
    let state = key.why.as_ref().map(|why| why.state);
    let stopped = key.share.as_ref().filter(|share| waits_for(share, state.as_ref()));
    let stopped = stopped.and_then(why_stopped);
    let text = match &key.why {
        None => {
            let unsettled = key.unsettled;
            format!(
                "{unsettled} not settled; none in the lines of its pool: waiting for room, or on the way to outputs"
            )
        }
        Some(why) => {
            let attempt = match why.attempt {
                // An outage was to blame, or nothing has failed yet.
                0 => "head with no attempt that counts".to_owned(),
                attempt if attempt <= key.attempts => {
                    format!("head attempt {attempt} of {}", key.attempts)
                }
                // It was started this often, and usually given back before it began.
                _ => "head".to_owned(),
            };
            let head = match why.state {
                KeyState::Queued if stopped.is_some() => "the first is queued".to_owned(),
                KeyState::Queued => "the first is queued, and only waits for its turn".to_owned(),
                KeyState::Ready if stopped.is_some() => "it has yielded to other keys".to_owned(),
                KeyState::Ready => "it has yielded to other keys, and its turn is next".to_owned(),
                KeyState::Running { worker, since } => {
                    format!("{attempt}, in hand of worker {worker} for {}", time(since))
                }
                KeyState::Retrying { next, .. } => format!("{attempt}, next in {}", time(next)),
                KeyState::Parked { since, .. } => format!(
                    "{attempt} failed for good, parked for {} until an operator decides: resume, skip or drop",
                    time(since)
                ),
                _ => attempt,
            };
            format!("{} waiting; {head}", why.waiting)
        }
    };
    let mut out = stopped.map_or_else(String::new, |why| format!("{why}; "));
    out.push_str(&text);
    let of = key.partitions.iter().map(|of| (of.partition.0, of.unsettled));
    out.push_str(&partitions(&of.collect::<Vec<_>>()));
    // Writing into a String cannot fail.
    if let Some(error) = key.why.as_ref().and_then(|why| why.last_error.as_ref()) {
        let _ = write!(out, ", last error: {error}");
    }
    if let Some(share) = &key.share {
        let _ = write!(out, "; {}", shares::text(share, key.beside));
    }
    if let Some(outage) = &key.share_outage {
        let _ = write!(
            out,
            "; its share has been in outage for {}: {}",
            time(outage.lasted),
            outage.error
        );
    }
    if let Some(output) = held_by {
        let pool = &key.pool;
        let _ = write!(out, "; workers of the pool `{pool}` wait for the output `{output}`");
    }
    if let Some(outage) = outage {
        let _ = write!(
            out,
            "; its handler has been in outage for {}: {}",
            time(outage.lasted),
            outage.error
        );
    }
    out
}

/// Whether the first event of a key in this state waits for its share. One that is retried later
/// waits for a hold or a pause only: by then, a worker may be free.
fn waits_for(share: &ShareStatus, state: Option<&KeyState>) -> bool {
    match state {
        None | Some(KeyState::Queued | KeyState::Ready) => true,
        Some(KeyState::Retrying { .. }) => {
            matches!(share.state, ShareState::Held(_) | ShareState::Paused)
        }
        Some(_) => false,
    }
}

/// Why nothing of this share can be started now: `its share acme is paused`. `None` if something
/// can.
fn why_stopped(status: &ShareStatus) -> Option<String> {
    let in_time = |until: Instant| time(until.saturating_duration_since(Instant::now()));
    let why = match status.state {
        ShareState::Full => "has as many events in hand as it may".to_owned(),
        ShareState::Rate(until) => format!("may start the next by its rate in {}", in_time(until)),
        ShareState::Held(_) if shares::is_gone(status) => {
            "is paused until it is resumed: its target wants nothing more".to_owned()
        }
        ShareState::Held(until) => format!("is held for another {}", in_time(until)),
        ShareState::Probing => "waits for the attempt that probes after a hold".to_owned(),
        ShareState::Paused if status.limits.most_in_hand() == Some(0) => {
            "may have none in hand: its `in_hand` is 0".to_owned()
        }
        ShareState::Paused => "is paused until it is resumed".to_owned(),
        _ => return None,
    };
    let share = match &status.share {
        common if *common == Share::COMMON => "the share of events without one".to_owned(),
        share => format!("its share {share}"),
    };
    Some(format!("{share} {why}"))
}

/// The partitions and the number in each, if the input has several.
fn partitions(of: &[(u32, u64)]) -> String {
    let each = |(partition, events): &(u32, u64)| format!("{events} of partition {partition}");
    match of {
        [] => String::new(),
        [(only, _)] => format!(", of partition {only}"),
        several => format!(", {}", several.iter().map(each).collect::<Vec<_>>().join(" and ")),
    }
}

/// `12 ms`, `8.1 s`, `3 min`, `2.5 h`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..1.0 => format!("{} ms", time.as_millis()),
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use greenroom::{limits::Rate, prelude::*, shares::ShareLimits};

    use super::*;

    #[test]
    fn d15_c13_the_partitions_of_what_waits_are_named_where_there_are_several() {
        let told = [&[][..], &[(3, 2)], &[(0, 12), (3, 5)]].map(partitions);
        assert_eq!(told, ["", ", of partition 3", ", 12 of partition 0 and 5 of partition 3"]);
    }

    #[test]
    fn times_are_as_people_say_them() {
        let shown = [12, 8_100, 180_000, 9_000_000].map(|ms| time(Duration::from_millis(ms)));
        assert_eq!(shown, ["12 ms", "8.1 s", "3 min", "2.5 h"]);
    }

    struct Clerk;

    impl Actor for Clerk {
        type Message = String;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, _: String, _: &mut Context<Self>) -> Result<(), ()> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn q11_what_a_share_waits_for_is_told_first() {
        let pool = Pool::new(|_| Clerk).workers(2).shared_by(String::clone).spawn().await.unwrap();
        let shares = pool.admin().shares().unwrap();
        let stopped = || why_stopped(&shares.status("acme"));
        let limits = ShareLimits::default().in_hand(1);
        shares.set("acme", limits).unwrap();
        assert_eq!(stopped(), None);
        for _ in 0..3 {
            pool.send("acme".to_owned()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let told = |text: &str| assert_eq!(stopped().as_deref(), Some(text));
        told("its share acme has as many events in hand as it may");
        let rate = Rate::new(1, Duration::from_secs(3_600));
        shares.set("acme", limits.in_hand(9).rate(rate)).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = "its share acme may start the next by its rate in ";
        assert!(stopped().is_some_and(|told| told.starts_with(next)), "{:?}", stopped());
        shares.hold("acme", Instant::now() + Duration::from_secs(60));
        told("its share acme is held for another 60.0 s");
        shares.hold("acme", Instant::now() + Duration::from_secs(200 * 365 * 24 * 3_600));
        told("its share acme is paused until it is resumed: its target wants nothing more");
        shares.pause("acme");
        told("its share acme is paused until it is resumed");
        shares.set("acme", limits.in_hand(0)).unwrap();
        told("its share acme may have none in hand: its `in_hand` is 0");
    }
}
