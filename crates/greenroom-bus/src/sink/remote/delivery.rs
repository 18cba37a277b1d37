//! A request, and its consequence for each event.

use std::{sync::atomic::Ordering, time::Duration};

use greenroom::Backoff;
use tokio::time::Instant;

use super::{
    shared::Shared,
    target::{Attempted, Remote, TargetHad},
    waiting::WaitingEvent,
};

/// A batch that has failed this often is split in halves from then on, until the event that causes
/// the failure is alone. A short disruption of the target is over by then, and leaves the batch
/// whole.
const FAILS_WHOLE: u32 = 3;

/// The same if the target may be down, and has settled nothing else in between.
const FAILS_WHOLE_IN_OUTAGE: u32 = 10;

/// Parts of a request: those of each are sent again together.
type ResentParts<K> = Vec<Vec<WaitingEvent<K>>>;

/// Makes an attempt at these events. It settles them, or they go back before their lines: while
/// they wait for the next one, others are sent.
pub(super) async fn deliver<R: Remote>(shared: &Shared<R>, events: Vec<WaitingEvent<R::Kept>>) {
    let mut lines: Vec<_> = events.iter().filter_map(|waiting| waiting.line).collect();
    lines.sort_unstable();
    lines.dedup();
    let again = attempt(shared, events).await;
    // Only now the next of its lines may go, so that an order which is audited there holds.
    shared.is_over(lines, again);
}

/// Attempts until they are settled, or are to be sent again later: those.
async fn attempt<R: Remote>(
    shared: &Shared<R>,
    mut events: Vec<WaitingEvent<R::Kept>>,
) -> ResentParts<R::Kept> {
    let Shared { remote, gate, .. } = shared;
    loop {
        let number = events[0].number;
        if let Some(why) = remote.down() {
            gate.fails(number, &remote.describe(), &why, None, false);
            remote.ready().await;
        }
        let _pass = gate.pass().await;
        // Their new owner sends them.
        for revoked in events.extract_if(.., |waiting| waiting.ack.is_revoked()) {
            gate.leaves(revoked.number);
        }
        let Some(last) = events.iter().map(|waiting| waiting.attempt).max() else {
            return Vec::new();
        };
        let number = events[0].number;
        events.iter_mut().for_each(|waiting| waiting.attempt = last + 1);
        match remote.attempt(&events).await {
            Attempted::Stored => {
                shared.works(number);
                events.into_iter().for_each(|waiting| waiting.ack.confirm());
                return Vec::new();
            }
            Attempted::Rejected(error) => {
                shared.works(number);
                return rejected(events, &error);
            }
            Attempted::Unwritable(error) => {
                gate.leaves(number);
                return rejected(events, &error);
            }
            Attempted::Failed { error, after, had } => {
                shared.counts_unanswered(had, events.len());
                gate.fails(number, &remote.describe(), &error, after, false);
                let settled = shared.settled.load(Ordering::Relaxed);
                return put_off(events, &remote.pace().backoff, after, had, settled);
            }
            Attempted::Refused(error) => {
                gate.fails(number, &remote.describe(), &error, None, true);
                let settled = shared.settled.load(Ordering::Relaxed);
                let backoff = &remote.pace().backoff;
                return put_off(events, backoff, None, TargetHad::Answered, settled);
            }
            Attempted::Ended(error) => {
                shared.fail(&error);
                shared.give_up();
                return vec![events];
            }
            Attempted::Replaced(had) => shared.counts_unanswered(had, events.len()),
            Attempted::Misconfigured(error) => {
                gate.pause(&remote.describe(), &error, &remote.pace().probe, rand::random());
            }
        }
    }
}

/// One of several is to blame, and it is unknown which: each is sent by itself.
fn rejected<K>(mut events: Vec<WaitingEvent<K>>, error: &str) -> ResentParts<K> {
    if events.len() == 1 {
        events.into_iter().for_each(|waiting| waiting.ack.reject(error));
        return Vec::new();
    }
    let now = Instant::now();
    events.iter_mut().for_each(|waiting| waiting.due = now);
    events.into_iter().map(|waiting| vec![waiting]).collect()
}

/// When events that have failed for now are sent again, and which of them together. `settled` is
/// how many requests the target has settled by now.
fn put_off<K>(
    mut events: Vec<WaitingEvent<K>>,
    backoff: &Backoff,
    after: Option<Duration>,
    had: TargetHad,
    settled: u64,
) -> ResentParts<K> {
    let settles_others = settled > events[0].settled;
    let failures = events.iter().map(|waiting| waiting.failures).max().unwrap_or(0) + 1;
    let due = Instant::now() + after.unwrap_or_else(|| backoff.wait(failures, rand::random()));
    for waiting in &mut events {
        (waiting.failures, waiting.settled, waiting.due) = (failures, settled, due);
    }
    // A target that names a wait has no problem with the event.
    let splits = after.is_none() && failures >= fails_whole(had, settles_others);
    let half = if splits { events.len() / 2 } else { 0 };
    let rest = events.split_off(events.len() - half);
    [events, rest].into_iter().filter(|part| !part.is_empty()).collect()
}

/// How often a batch fails before it is split. Behind a gateway, a target that is down looks like
/// an event that it cannot process; whether it settles other requests distinguishes the two.
fn fails_whole(had: TargetHad, settles_others: bool) -> u32 {
    match had {
        TargetHad::Nothing => u32::MAX,
        TargetHad::Unavailable | TargetHad::Gateway if !settles_others => FAILS_WHOLE_IN_OUTAGE,
        _ => FAILS_WHOLE,
    }
}
