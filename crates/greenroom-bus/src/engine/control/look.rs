//! An operator's view of a running engine.
//!
//! Nothing is counted for it while events pass. A request takes the locks of a pool's shards for a
//! moment each, so its answer comes in bounded time, even if a pool is saturated and its handlers
//! are stuck.

use std::{
    cell::Cell,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom::{
    DeadLetterReason, PoolStats,
    advisor::Advice,
    keys::{KeyCounts, KeyState, KeyStatus, Keys},
    shares::{Share, ShareStatus},
};

use super::{Control, pool::PoolControl};
use crate::{
    engine::{
        account::order_audit::OrderLine,
        egress::dead_letters::ToldLetter,
        intake::view::InputView,
        process::{
            circuit::OutageView, entries::HandlerEntry, job::BusError, parked::ParkedEvent,
            worker::BusWorker,
        },
    },
    event::OrderBy,
    handler::CrashLoop,
    pattern::Pattern,
    router::{PoolConfig, Retry},
    sink::Trouble,
    source::Partition,
};

/// The state of a pool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolView {
    /// Its name.
    pub name: String,
    /// The figures of its workers and its queue.
    pub stats: PoolStats,
    /// Its settings as they are now.
    pub config: PoolConfig,
    /// True while attempts are paused.
    pub paused: bool,
    /// How many keys are in hand or wait. `None` where the pool keeps no
    /// order, or by sticky workers.
    pub keys: Option<KeyCounts>,
    /// True if its events have shares.
    pub has_shares: bool,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Attempts that were not the first of their event.
    pub further_attempts: u64,
    /// Events for its handlers that were stored as dead letters.
    pub dead_lettered: u64,
    /// Its advisor's last advice; `None` if it has none, and before its first period has ended.
    pub advice: Option<Advice>,
    /// One of its handlers is in outage: its workers return most events unstarted, so the pool's
    /// measurements say nothing about attempts.
    pub in_outage: bool,
}

/// The events of a handler, and its state.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerView {
    /// Its name.
    pub name: String,
    /// The pool that runs it.
    pub pool: String,
    /// The event types that it handles.
    pub on: Vec<Pattern>,
    /// The field by which its events are ordered.
    pub order_by: Option<OrderBy>,
    /// How failures are retried, as it is now.
    pub retry: Retry,
    /// True while attempts are paused.
    pub paused: bool,
    /// Its outage, if it is in one.
    pub outage: Option<OutageView>,
    /// How often one of its worker processes died, or was killed because of its answer.
    pub crashes: u64,
    /// Its worker processes die again and again.
    pub crash_loop: Option<CrashLoop>,
    /// Events that came to it without a value at [`order_by`](Self::order_by), and so without
    /// order. Those that became dead letters because of that do not count.
    pub without_key: u64,
}

impl HandlerView {
    /// How many events had no key there, in a sentence; `None` if each had one.
    pub fn told_without_key(&self) -> Option<String> {
        let Self { name, order_by: Some(order_by), without_key: count @ 1.., .. } = self else {
            return None;
        };
        let events = if *count == 1 { "event" } else { "events" };
        Some(format!(
            "{count} {events} had no key at the handler `{name}` (order_by: {order_by}): no order \
             was kept among them"
        ))
    }
}

/// The state of a key with one handler and one input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyView {
    /// The key.
    pub key: String,
    /// The handler by which it is ordered.
    pub handler: String,
    /// Its pool.
    pub pool: String,
    /// The input that its events come from.
    pub input: String,
    /// Its events that were taken and are not done: they are not settled, and no output has taken
    /// their results.
    pub unsettled: u64,
    /// How many of them are of each partition, where its input has several; otherwise empty.
    pub partitions: Vec<KeyPartition>,
    /// Its position in the pool, and why it waits; `None` if its events wait for room in the pool
    /// or for their outputs, or if the pool does not keep order by lanes.
    pub why: Option<KeyStatus>,
    /// Attempts that its handler makes at an event in all.
    pub attempts: u32,
    /// The event that has parked it, if it is parked.
    pub parked_for: Option<ParkedEvent>,
    /// The share of the first of its events that waits in the pool or beside it, if they have
    /// shares.
    pub share: Option<ShareStatus>,
    /// How many events of that share wait beside the pool.
    pub beside: usize,
    /// The outage of that share at the handler, if shares are told apart.
    pub share_outage: Option<OutageView>,
}

/// A key's events in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPartition {
    /// Which.
    pub partition: Partition,
    /// Events of the key that were taken of it and are not settled.
    pub unsettled: u64,
}

/// A key that waits for an operator.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParkedView {
    /// The key.
    pub key: String,
    /// The handler by which it is ordered.
    pub handler: String,
    /// Its pool.
    pub pool: String,
    /// The input that its events come from.
    pub input: String,
    /// For how long it has waited.
    pub since: Duration,
    /// How its event has failed.
    pub reason: DeadLetterReason,
    /// Its error.
    pub error: Option<String>,
    /// How many events wait behind that one.
    pub waiting: usize,
    /// The event that has failed.
    pub event: Option<ParkedEvent>,
}

/// A key with much work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotView {
    /// The key.
    pub key: String,
    /// The handler by which it is ordered.
    pub handler: String,
    /// Its pool.
    pub pool: String,
    /// How many events of it were handled: an estimate.
    pub events: u64,
    /// By how many that may be too large.
    pub at_most_too_large: u64,
}

impl Control {
    /// The states of the pools, in the order of their settings.
    pub fn pool_views(&self) -> Vec<PoolView> {
        (0..self.shared.process.pools.len()).map(|place| self.pool_view(place)).collect()
    }

    /// The state of each input.
    pub fn input_views(&self) -> Vec<InputView> {
        self.shared.inputs.views()
    }

    /// The states of the handlers.
    pub fn handler_views(&self) -> Vec<HandlerView> {
        self.shared.process.handlers.iter().map(|handler| self.handler_view(handler)).collect()
    }

    /// Outputs and dead letters that cannot store any more, and why.
    pub fn failures(&self) -> Vec<String> {
        let outputs = self.shared.egress.outputs.at_work();
        let outputs = outputs.iter().map(|output| output.sink.failure());
        let failures = outputs.chain([self.shared.egress.dead_letters.store.failure()]).flatten();
        failures.map(|failure| failure.to_string()).collect()
    }

    /// Why dead letters cannot be stored, or soon may not be: their store is full. The events stay
    /// unsettled until it has room.
    pub fn dead_letter_trouble(&self) -> Option<Trouble> {
        self.shared.egress.dead_letters.store.trouble()
    }

    /// The last dead letter in the log: about the last one, or the first of many that came
    /// together.
    pub fn told_letter(&self) -> Option<ToldLetter> {
        self.shared.egress.dead_letters.told()
    }

    /// The state of a key with each handler and input that has events of it. Empty if all of its
    /// events are settled.
    pub fn why(&self, key: &str) -> Vec<KeyView> {
        self.lines(key).into_iter().filter_map(|line| self.key_view(&line)).collect()
    }

    /// The keys that wait for an operator, those that wait longest first.
    pub fn parked(&self) -> Vec<ParkedView> {
        let mut parked = Vec::new();
        for keys in self.managed.iter().filter_map(|managed| managed.keys.as_ref()) {
            parked.extend(keys.parked().into_iter().map(|parked| {
                let (handler, input) = self.names(&parked.key);
                let why = keys.status(&parked.key, error_text);
                ParkedView {
                    key: parked.key.key.to_string(),
                    handler: handler.name.to_string(),
                    pool: self.shared.process.pools[handler.pool].name.to_string(),
                    input,
                    since: parked.since,
                    reason: parked.reason,
                    error: why.and_then(|why| why.last_error),
                    waiting: parked.waiting,
                    event: self.shared.process.parked.event(&parked.key),
                }
            }));
        }
        parked.sort_by_key(|parked| std::cmp::Reverse(parked.since));
        parked
    }

    /// The keys with the most events, at most 64 of each pool.
    pub fn hottest(&self, most: usize) -> Vec<HotView> {
        let mut hottest = Vec::new();
        for (place, managed) in self.managed.iter().enumerate() {
            let Some(keys) = &managed.keys else { continue };
            hottest.extend(keys.hottest_by_count(most).into_iter().map(|hot| HotView {
                key: hot.key.key.to_string(),
                handler: self.names(&hot.key).0.name.to_string(),
                pool: self.shared.process.pools[place].name.to_string(),
                events: hot.amount,
                at_most_too_large: hot.at_most_too_large,
            }));
        }
        hottest.sort_by_key(|hot| std::cmp::Reverse(hot.events));
        hottest.truncate(most);
        hottest
    }

    fn pool_view(&self, place: usize) -> PoolView {
        let (settings, managed) = (&self.shared.process.pools[place], &self.managed[place]);
        let mut handlers = self.shared.process.handlers.iter().filter(|of| of.pool == place);
        PoolView {
            name: settings.name.to_string(),
            stats: managed.admin.stats(),
            config: *settings.config.lock(),
            paused: settings.pause.is_on(),
            keys: managed.keys.as_ref().map(Keys::counts),
            has_shares: managed.admin.shares().is_ok(),
            failed_attempts: settings.failed_attempts.load(Ordering::Relaxed),
            further_attempts: settings.further_attempts.load(Ordering::Relaxed),
            dead_lettered: self.shared.ledger.letters.of_pool(place),
            advice: managed.admin.advice(),
            in_outage: handlers.any(|handler| handler.circuits.is_down()),
        }
    }

    fn handler_view(&self, handler: &HandlerEntry) -> HandlerView {
        HandlerView {
            name: handler.name.to_string(),
            pool: self.shared.process.pools[handler.pool].name.to_string(),
            on: handler.config.on.clone(),
            order_by: handler.config.order_by,
            retry: handler.retry(),
            paused: handler.pause.is_on(),
            outage: handler.circuits.view(),
            crashes: handler.config.factory.crashes(),
            crash_loop: handler.config.factory.crash_loop(),
            without_key: handler.without_key.load(Ordering::Relaxed),
        }
    }

    fn key_view(&self, line: &OrderLine) -> Option<KeyView> {
        let unsettled = self.shared.ledger.audit.pending(line)?;
        let (handler, input) = self.names(line);
        let counted = Cell::new(None);
        let describe = |error: &BusError| {
            counted.set(Some(error.failures));
            error_text(error)
        };
        let mut why = self.keys_of(line).and_then(|keys| keys.status(line, describe));
        // The pool also counts events that its worker returned unstarted.
        if let Some((why, counted)) = why.as_mut().zip(counted.get()) {
            why.attempt = counted;
        }
        let state = why.as_ref().map(|why| why.state);
        let is_parked = matches!(state, Some(KeyState::Parked { .. }));
        let pool = PoolControl { control: self.clone(), place: handler.pool };
        let shares = pool.shares();
        let share = shares.as_ref().and_then(|shares| shares.status_of_line(line));
        let share_outage = share.as_ref().and_then(|status| {
            let name = (status.share != Share::COMMON).then(|| status.share.to_string().into());
            handler.circuits.share_outage(&name)
        });
        let beside = shares.zip(share.as_ref()).map(|(all, share)| all.beside(&share.share));
        Some(KeyView {
            key: line.key.to_string(),
            handler: handler.name.to_string(),
            pool: self.shared.process.pools[handler.pool].name.to_string(),
            input,
            unsettled: u64::from(unsettled),
            partitions: self.key_partitions(line),
            why,
            attempts: handler.retry().attempts,
            parked_for: self.shared.process.parked.event(line).filter(|_| is_parked),
            share,
            beside: beside.unwrap_or(0),
            share_outage,
        })
    }

    fn key_partitions(&self, line: &OrderLine) -> Vec<KeyPartition> {
        let of = self.shared.ledger.by_partition.partitions(line.id()).into_iter();
        let view = |(partition, events)| KeyPartition { partition, unsettled: u64::from(events) };
        of.map(view).collect()
    }

    /// Every line that this key can stand in: one for each handler that
    /// keeps order, and each input.
    pub(super) fn lines(&self, key: &str) -> Vec<OrderLine> {
        let key: Arc<str> = key.into();
        let inputs = 0..self.shared.inputs.names().len() as u32;
        let ordered = self.shared.process.handlers.iter().enumerate().filter(|(_, handler)| {
            handler.config.order_by.is_some() && self.shared.process.pools[handler.pool].keeps_order
        });
        let line = |handler, input| self.shared.ledger.audit.line(input, handler, key.clone());
        ordered
            .flat_map(|(handler, _)| inputs.clone().map(move |input| (handler, input)))
            .map(|(handler, input)| line(handler, input))
            .collect()
    }

    pub(super) fn keys_of(&self, line: &OrderLine) -> Option<&Keys<BusWorker, OrderLine>> {
        self.managed[self.names(line).0.pool].keys.as_ref()
    }

    /// The handler of a line, and the name of its input.
    pub(super) fn names(&self, line: &OrderLine) -> (&HandlerEntry, String) {
        let input = self.shared.inputs.name(line.input).to_string();
        (&self.shared.process.handlers[line.handler as usize], input)
    }
}

pub(super) fn error_text(error: &BusError) -> String {
    error.failure.error.clone()
}
