//! The state of a key, in a sentence (C13).

use std::{fmt::Write, time::Duration};

use greenroom::keys::KeyState;
use greenroom_bus::engine::{KeyView, OutageView};

use super::shares;

/// For example `17 waiting; head attempt 4 of 10, next in 8.1 s, last error: 503 after 12 ms`.
/// `held_by`: the output that the workers of its pool wait for.
pub(super) fn compose(key: &KeyView, outage: Option<&OutageView>, held_by: Option<&str>) -> String {
    let mut out = match &key.why {
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
                KeyState::Queued => "the first is queued, and only waits for its turn".to_owned(),
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
}
