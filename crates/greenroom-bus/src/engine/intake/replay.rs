//! Dead letters that are handled again: from their store to the end of their key's line (C04, D06).
//!
//! ```text
//! store ──take──▶ hand_out ──▶ queue of the input that once gave them ──▶ its intake ──▶ pool
//!   ▲                    └───▶ the way back, for what had come back in          │
//!   └───────────────── settled, given back, refused ◀───────────────────────────┘
//! ```
//!
//! The intake of an input is the only task that puts events into its lines, so a replayed letter
//! comes after all events that it has routed before, including those that wait for a full pool. For
//! that, an intake whose source has ended stays ([`linger`](super::reader)) until no input is read
//! any more, all of their events are with the pools, and no letter waits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    route::Routing,
    ticket::{Batch, Ticket},
};
use crate::{
    dead_letter::replay::{Replay, TakenLetters},
    engine::{
        account::order_audit::OrderLine,
        process::{
            loopback::{Loopback, Returning},
            origin::Origin,
            replaying::{Again, Replaying, UnderReplay},
        },
        shared::Shared,
    },
    settlement::{Ack, Settle, Settled},
};

/// Letters that are taken at once, and bytes of them.
const AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 32 << 20;

/// A store that could not give any is asked again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Nothing more is taken once none of these inputs is read or has anything left to hand over, and
/// no letter waits. Then none may be added any more either: its letters would not be taken.
pub(crate) fn close_if_idle(shared: &Shared, intakes: usize) {
    if let Some(replaying) = &shared.replaying
        && shared.inputs.reading() == 0
        && replaying.lingering() == intakes
        && replaying.is_idle()
        && shared.inputs.close_if_none_arrived()
    {
        replaying.close();
    }
}

/// Waits until that may have come about.
pub(crate) async fn changed(shared: &Shared) {
    match &shared.replaying {
        Some(replaying) => replaying.changed().await,
        None => std::future::pending().await,
    }
}

/// Takes letters from their store and hands them to the inputs that they came from, until the run
/// takes nothing more.
pub(crate) async fn hand_out(replaying: Arc<Replaying>, shared: Arc<Shared>) {
    while replaying.unless_over(replaying.room()).await {
        let began = Instant::now();
        let Some(taken) = take(&replaying).await else { return };
        if taken.letters.is_empty() {
            replaying.set_idle(true);
            replaying.unless_over(replaying.store.marked()).await;
            replaying.set_idle(false);
            continue;
        }
        let count = taken.letters.len();
        for letter in taken.letters {
            hand(&replaying, &shared, letter).await;
        }
        if let Some(rate) = taken.rate.filter(|rate| *rate > 0.0) {
            let pause = Duration::try_from_secs_f64(count as f64 / rate).unwrap_or(Duration::MAX);
            let Some(until) = began.checked_add(pause) else { continue };
            replaying.unless_over(sleep_until(until)).await;
        }
    }
}

/// The next letters, requested until the store can give them. Until then they count as waiting, so
/// the run does not end without them before its limit for an outage. `None` once the run takes
/// nothing more.
async fn take(replaying: &Replaying) -> Option<TakenLetters> {
    loop {
        match replaying.store.take(AT_ONCE, BYTES_AT_ONCE).await {
            Ok(taken) => {
                replaying.works();
                return Some(taken);
            }
            Err(error) if replaying.fails(error.to_string()) => {
                tracing::warn!(%error, "no dead letter was taken for a replay: it is tried again");
            }
            Err(_) => {}
        }
        if !replaying.unless_over(sleep(AGAIN)).await {
            return None;
        }
    }
}

/// To the input that once gave it, or back to the store with the reason.
async fn hand(replaying: &Arc<Replaying>, shared: &Arc<Shared>, letter: Replay) {
    let Replay { replayed, event, input, handler } = letter;
    let under_way = UnderReplay::new(replaying, replayed, event.approximate_bytes());
    let handlers = &shared.process.handlers;
    let to = match &handler {
        None => None,
        Some(name) => match handlers.iter().position(|known| *known.name == **name) {
            Some(place) => Some(place),
            None => {
                return under_way.refuse(format!(
                    "there is no handler {name:?} any more: configure one of this name, or drop the letter"
                ));
            }
        },
    };
    let again = Again { event: event.with_local(replayed), to, under_way };
    if let Some(loopback) = &shared.loopback
        && shared.inputs.name(loopback.place) == input
    {
        return send_back(replaying, shared, loopback, again).await;
    }
    match shared.inputs.named(&input) {
        Ok(found) => found.replays.put(again),
        Err(_) => again.under_way.refuse(format!(
            "there is no input {input:?} any more: configure one of this name, or drop the letter"
        )),
    }
}

/// An event that had come back in goes through the loopback once more.
async fn send_back(
    replaying: &Arc<Replaying>,
    shared: &Arc<Shared>,
    loopback: &Arc<Loopback>,
    again: Again,
) {
    let reserved = loop {
        if let Some(reserved) = loopback.room.try_reserve(1) {
            break reserved;
        }
        if !replaying.unless_over(loopback.room.has(1)).await {
            return;
        }
    };
    let batch = Batch::of_replay(&shared.ledger, &shared.inputs.get(loopback.place));
    let Origin { assigned, taken_at, .. } = Origin::of_replay(loopback.place, 0);
    let Again { event, to, under_way } = again;
    shared.ledger.takes(1);
    let ack = Ack::new(ReplayTicket {
        ticket: Ticket::new(batch, 0, None),
        under_way: Mutex::new(Some(under_way)),
    });
    loopback.send(Returning { event, ack, reserved, assigned, taken_at, to });
}

/// Puts a letter at the end of its key's line.
pub(crate) fn route(again: Again, routing: &mut Routing, origin: Origin, batch: Arc<Batch>) {
    let ledger = batch.ledger.clone();
    ledger.takes(1);
    let under_way = Mutex::new(Some(again.under_way));
    let settles = |line: Option<&OrderLine>| {
        if let Some(line) = line {
            ledger.takes_in_line(line, None);
        }
        let ticket = Ticket::new(batch.clone(), 0, line.map(OrderLine::id));
        Ack::new(ReplayTicket { ticket, under_way: Mutex::new(under_way.lock().take()) })
    };
    routing.route_again(again.event, again.to, origin, None, &settles);
}

/// The settlement of a letter that is handled again.
struct ReplayTicket {
    ticket: Ticket,
    under_way: Mutex<Option<UnderReplay>>,
}

impl Settle for ReplayTicket {
    fn left(&self) {
        self.ticket.left();
    }

    fn settled(&self, how: Settled) {
        self.ticket.settled(how);
        if let Some(under_way) = self.under_way.lock().take() {
            under_way.ends(self.ticket.ends(how));
        }
    }
}
