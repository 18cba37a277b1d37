//! Senders, and operators that decide about parked keys.

use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Address, CallError, Class, Envelope, FinalAction, NotAccepted, Pool,
    keys::{KeyCounts, KeyState, Keys},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    model::Log,
    program::{Decision, Deed, Full, How, KEYS, Key, Message, Program, Telling},
};

/// An order to a sender: the number of the step, how, key, class, and what the handler does.
pub(crate) type Order = (u32, How, Option<u8>, Class, Deed);

/// Messages of one step are numbered from this many times the step's number.
const NUMBERS: u32 = 8;

/// The pool, from the view of senders and operators.
pub(crate) struct Desk<A: Actor> {
    pub(crate) keys: Keys<A, Key>,
    pub(crate) log: Log,
    pub(crate) program: Arc<Program>,
    /// Calls that have not been resolved.
    pub(crate) calls: Arc<()>,
}

impl<A: Actor<Message = Message, Reply = u32, Error = u32>> Desk<A> {
    fn violation(&self, what: String) {
        self.log.lock().violations.push(what);
    }

    fn is_parked(&self, key: u8) -> bool {
        let hashes = self.program.hashes;
        self.keys.parked().iter().any(|parked| parked.key.0 % hashes == key % hashes)
    }

    /// Just now: nothing else has been done since.
    fn accepted(&self, number: u32, key: Option<u8>) {
        self.log.lock().accepts(number);
        let Some(key) = key else { return };
        if self.program.full == Full::Fallback {
            return;
        }
        let parked = self.is_parked(key);
        let bound = match parked {
            true => self.program.max_behind_parked(),
            false => self.program.max_per_key(),
        };
        // Messages collected for a batch no longer wait, and are not in hand yet.
        let collected = match self.program.batches {
            Some(sizes) if sizes.within > 0 => sizes.most * usize::from(KEYS),
            _ => 0,
        };
        let waiting = self.log.lock().waiting(key, number).0 + 1;
        if waiting > bound + collected {
            let what = format!("{number}, parked {parked}: {waiting} of key {key} wait");
            self.violation(what);
        }
    }

    fn refused(&self, number: u32, key: Option<u8>, why: NotAccepted) {
        let least = match (why, key) {
            (NotAccepted::KeyRequired, None) if self.program.key_required => return,
            (NotAccepted::KeyFull, Some(_)) => self.program.max_per_key(),
            (NotAccepted::Parked, Some(key)) if self.is_parked(key) => {
                self.program.max_behind_parked()
            }
            (NotAccepted::KeyRequired | NotAccepted::KeyFull | NotAccepted::Parked, _) => {
                return self.violation(format!("{number} is refused: {why:?}"));
            }
            _ => return,
        };
        let (known, all) = self.log.lock().waiting(key.unwrap_or_default(), number);
        if all < least && all == known {
            self.violation(format!("{number} is refused ({why:?}), and only {known} wait"));
        }
    }

    fn sent(&self, number: u32, key: Option<u8>, sent: Result<(), NotAccepted>) {
        match sent {
            Ok(()) => self.accepted(number, key),
            Err(why) => self.refused(number, key, why),
        }
    }

    fn called(&self, number: u32, reply: Result<u32, CallError<u32, Message>>) {
        let finally = self.program.finally();
        let copied = self.program.telling != Telling::Policy;
        match reply {
            Ok(of) | Err(CallError::Failed(of)) if of != number && self.program.most() == 1 => {
                self.violation(format!("{number} has the reply of {of}"));
            }
            Err(CallError::Failed(_)) if finally == FinalAction::Return && copied => {
                self.log.lock().ends(number, "failed");
            }
            Err(CallError::Parked) if finally != FinalAction::ParkKey => {
                self.violation(format!("{number}: nothing is ever parked"));
            }
            _ => {}
        }
    }

    /// Runs every query that there is.
    pub(crate) fn look(&self, pool: &Pool<A>) {
        let (stats, counts) = (pool.stats(), self.keys.counts());
        let (parked, longest) = (self.keys.parked(), self.keys.longest_line());
        let in_line: usize = parked.iter().map(|parked| parked.waiting).sum();
        let workers = stats.configured.max(12);
        let plausible = stats.ledger_holds()
            && counts.parked == parked.len()
            && counts.running <= workers
            && in_line <= counts.waiting
            && counts.waiting as u64 <= stats.queued
            && longest.iter().all(|longest| longest.messages as u64 <= stats.queued);
        if !plausible {
            self.violation(format!("{stats:?}, {counts:?}, {parked:?}, {longest:?}"));
        }
        if pool.try_reserve().err() == Some(NotAccepted::Stopped) {
            // A stop has the leftover messages.
            return;
        }
        for key in 0..KEYS {
            let why = self.keys.status(&self.program.key(key), |error| error.to_string());
            let state = why.as_ref().map(|why| why.state);
            let is_parked = matches!(state, Some(KeyState::Parked { .. }));
            let listed = parked.iter().any(|parked| parked.key.0 == key);
            let seen = self.log.lock();
            let running = matches!(state, Some(KeyState::Running { .. }));
            let lies = seen.is_in_hand(key) && !running
                || !seen.failed_of(key).is_empty()
                    && matches!(state, None | Some(KeyState::Queued));
            drop(seen);
            if is_parked != listed || lies {
                self.violation(format!("key {key}: {why:?}, {counts:?}, {parked:?}"));
            }
            let _ = why.map(|why| why.to_string());
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.keys.counts() == KeyCounts::default()
    }

    pub(crate) fn decide(&self, key: u8, decision: Decision) {
        let key_of = self.program.key(key);
        let was_parked = self.keys.parked().iter().any(|parked| *parked.key == key_of);
        let done = match decision {
            Decision::Release => self.keys.release(&key_of),
            Decision::Replay => {
                if was_parked {
                    self.log.lock().replays(key);
                }
                self.keys.replay(&key_of)
            }
            Decision::Remove => {
                let line = self.keys.remove(&key_of);
                if let Some(line) = &line {
                    self.log.lock().removes(key, line);
                }
                line.is_some()
            }
        };
        let is_parked = self.keys.parked().iter().any(|parked| *parked.key == key_of);
        if done != was_parked || is_parked {
            self.violation(format!("key {key}: {decision:?} is {done}, {was_parked}, {is_parked}"));
        }
    }

    /// Withdraws the messages of every fourth step from this one on, if they wait.
    pub(crate) fn withdraw(&self, pool: &Pool<A>, first: u32) {
        let mut chosen = Vec::new();
        let withdrawn = pool.admin().withdraw(|message| {
            let is_chosen = message.number / NUMBERS % 4 == first;
            chosen.extend(is_chosen.then_some(message.number));
            is_chosen
        });
        if withdrawn != chosen.len() {
            self.violation(format!("{withdrawn} are withdrawn, chosen were {chosen:?}"));
        }
        let mut seen = self.log.lock();
        chosen.into_iter().for_each(|number| seen.ends(number, "withdrawn"));
    }

    pub(crate) fn parked(&self) -> Vec<u8> {
        self.keys.parked().iter().map(|parked| parked.key.0).collect()
    }
}

/// A sender: carries out one order after another until there are no more.
pub(crate) async fn send_all<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    who: u8,
    desk: Arc<Desk<A>>,
    address: Address<Message, u32, u32>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let mut aside = JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order.1 {
            How::CallAside => {
                let (desk, address) = (desk.clone(), address.clone());
                aside.spawn(async move { obey(None, &desk, &address, order).await });
            }
            _ => obey(Some(who), &desk, &address, order).await,
        }
    }
    while let Some(ended) = aside.join_next().await {
        ended.expect("nobody panics there");
    }
}

async fn obey<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    who: Option<u8>,
    desk: &Desk<A>,
    address: &Address<Message, u32, u32>,
    (step, how, key, class, deed): Order,
) {
    let number = step * NUMBERS;
    let class = match how {
        How::Send | How::TrySend | How::Call | How::CallAside => class,
        _ => Class::Normal,
    };
    let message = |copy: u32| {
        let number = number + copy;
        let message = Message { number, key, deed, token: Arc::default() };
        desk.log.lock().sends(&message, class, who);
        message
    };
    let envelope = Envelope::new().class(class);
    let after = Duration::from_millis;
    let sent = match how {
        How::Send if class == Class::Normal => {
            address.send(message(0)).await.map_err(|error| error.without_message())
        }
        How::Send => {
            let sent = address.send_with(message(0), envelope).await;
            sent.map_err(|error| error.without_message())
        }
        How::TrySend => {
            let sent = address.try_send_with(message(0), envelope);
            sent.map_err(|error| error.without_message())
        }
        How::SendTimeout(ms) => {
            let sent = address.send_timeout(message(0), after(ms)).await;
            sent.map_err(|error| error.without_message())
        }
        How::CancelledSend(ms) => {
            let sent = address.send(message(0));
            let Ok(sent) = tokio::time::timeout(after(ms), sent).await else { return };
            sent.map_err(|error| error.without_message())
        }
        How::Expiring(ms) => {
            let sent = address.send_with(message(0), envelope.deadline(after(ms))).await;
            sent.map_err(|error| error.without_message())
        }
        How::Reserved => {
            let Ok(permit) = address.reserve().await else { return };
            permit.send(message(0)).map_err(|error| error.without_message())
        }
        How::Call | How::CallAside => {
            let call = desk.calls.clone();
            let reply = address.call_with(message(0), envelope).await;
            drop(call);
            return desk.called(number, reply);
        }
        How::CancelledCall(ms) => {
            let call = address.call(message(0));
            let Ok(reply) = tokio::time::timeout(after(ms), call).await else { return };
            return desk.called(number, reply);
        }
        How::Many(many) => {
            let mut messages = (0..many).map(message).collect();
            let _ = address.send_many(&mut messages).await;
            return;
        }
    };
    desk.sent(number, key, sent);
}
