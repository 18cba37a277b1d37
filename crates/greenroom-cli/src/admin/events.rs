//! Pool events, for watchers.

use std::{
    collections::VecDeque,
    time::{SystemTime, UNIX_EPOCH},
};

use greenroom::{
    PoolEvent, PoolEvents,
    pool_events::{Event, PoolEventReceiver, PoolEventRecord},
};
use greenroom_config::plural;
use serde_json::{Value, json};

use super::{sentence::time, views};

/// Events that are kept for later watchers and shown by a sample.
const KEPT: usize = 60;

/// The latest events of all pools; it receives them as long as it exists.
pub(super) struct Events {
    receiver: PoolEventReceiver,
    kept: VecDeque<ToldEvents>,
    next: u64,
}

struct ToldEvents {
    /// Never reused, so that a page knows which ones it has shown.
    number: u64,
    at: SystemTime,
    pool: String,
    kind: &'static str,
    text: String,
    /// How often it was repeated in a row.
    times: u64,
}

impl Events {
    pub(super) fn new() -> Self {
        // A page that slept may have shown events from another sampler: no number is used twice.
        let next = unix_millis() * 1_000;
        Self { receiver: PoolEvents::global().subscribe(), kept: VecDeque::new(), next }
    }

    /// The latest ones, oldest first. Takes newly arrived events first.
    pub(super) fn latest(&mut self) -> Value {
        let before = self.next;
        while let Some(event) = self.receiver.try_recv() {
            match event {
                Event::Item(record) => self.add(&record, before),
                Event::Lagged(missed) => {
                    let text = format!(
                        "{} came too fast to be shown",
                        plural(missed as usize, "further event")
                    );
                    self.push(SystemTime::now(), String::new(), "missed", text);
                }
            }
        }
        self.kept.iter().map(view).collect()
    }

    /// A repeated event is one line, so that a thousand dead letters leave other events visible.
    fn add(&mut self, record: &PoolEventRecord, since: u64) {
        let (kind, text) = (record.what.kind().name(), event_text(&record.what));
        let same = |told: &&mut ToldEvents| {
            told.number >= since
                && told.kind == kind
                && told.text == text
                && *told.pool == *record.pool
        };
        if let Some(told) = self.kept.iter_mut().rev().find(same) {
            (told.times, told.at) = (told.times + 1, record.at);
            return;
        }
        self.push(record.at, record.pool.to_string(), kind, text);
    }

    fn push(&mut self, at: SystemTime, pool: String, kind: &'static str, text: String) {
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(ToldEvents { number: self.next, at, pool, kind, text, times: 1 });
        self.next += 1;
    }
}

fn view(told: &ToldEvents) -> Value {
    let at = told.at.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_millis() as u64);
    json!({
        "number": told.number,
        "at_ms": at,
        "pool": told.pool,
        "kind": told.kind,
        "text": told.text,
        "times": told.times,
    })
}

/// The time of day, in milliseconds since 1970.
pub(super) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn event_text(event: &PoolEvent) -> String {
    use PoolEvent as E;
    match event {
        E::Started { workers } => format!("started with {}", plural(*workers, "worker")),
        E::Stopped { reason } => format!("stopped: {reason}"),
        E::WorkerRestarted { slot, restarts, reason } => {
            format!("worker {slot} was restarted ({restarts} so far): {reason}")
        }
        E::StartFailed { slot, error } => format!("worker {slot} could not be started: {error}"),
        E::BudgetExceeded { slot } => format!("worker {slot} has used up its restarts"),
        E::WorkerDisabled { slot } => format!("worker {slot} is disabled"),
        E::WorkerEnabled { slot } => format!("worker {slot} is enabled again"),
        E::WorkerWedged { slot, busy_for } => {
            format!("worker {slot} has held its event for {}", time(*busy_for))
        }
        E::DeadLetter { reason, .. } => format!("a dead letter: {}", views::reason(*reason)),
        E::MailboxFull => "the queue is full".to_owned(),
        E::MailboxDrained { full_for } => {
            format!("the queue has room again, after {}", time(*full_for))
        }
        E::DroppedByOverflow { messages } => {
            format!("{} had no room", plural(*messages as usize, "event"))
        }
        E::Resized { from, to, .. } => format!("{} instead of {from}", plural(*to, "worker")),
        E::CapacityChanged { from, to } => {
            format!("room for {} instead of {from}", plural(*to, "event"))
        }
        E::LimitChanged { from, to, .. } => format!("at most {to} at once instead of {from}"),
        E::SlotHeld { slot, messages, held_for } => {
            let events = plural(*messages, "event");
            format!("worker {slot} keeps {events} waiting, for {}", time(*held_for))
        }
        E::KeyParked => "a key was parked".to_owned(),
        E::KeyReleased => "a parked key was released".to_owned(),
        other => other.kind().name().replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn o07_a_flood_of_one_event_is_one_line_and_all_are_bounded() {
        let hub = PoolEvents::new(10_000);
        let mut events = Events { receiver: hub.subscribe(), kept: VecDeque::new(), next: 0 };
        let pool: Arc<str> = "erp".into();
        (0..500).for_each(|_| hub.emit(&pool, PoolEvent::KeyParked));
        hub.emit(&pool, PoolEvent::WorkerDisabled { slot: 3 });
        let told = events.latest();
        assert_eq!(
            (&told[0]["times"], &told[0]["text"]),
            (&json!(500), &json!("a key was parked"))
        );
        assert_eq!(told[1]["text"], "worker 3 is disabled");
        (0..500).for_each(|slot| hub.emit(&pool, PoolEvent::WorkerDisabled { slot }));
        let told = events.latest();
        assert_eq!(told.as_array().unwrap().len(), KEPT);
        assert_eq!(told[KEPT - 1]["text"], "worker 499 is disabled");
        hub.emit(&pool, PoolEvent::KeyParked);
        assert_eq!(events.latest()[KEPT - 1]["number"], 502, "a later one is a line of its own");
    }
}
