//! Handlers of events.

use greenroom_bus::engine::Retry;
use greenroom_config::{
    At, Chosen, count, each, flag, group, list, options, text, texts, variables, word, words,
};

use super::{condition::FieldCondition, layer::LayerConfig, pool::PoolConfig};
use crate::config::kinds::Handlers;

/// The `order_by` or `share_by` of a handler that has none, whatever its pool says.
const NONE: &str = "none";

options! {
    /// A handler for events of some types: exactly one kind.
    pub struct HandlerConfig named name = "a handler" {
        /// The event types: a type, a pattern or a list. `*` stands for one segment between
        /// dots, `**` for any number of them.
        on: Vec<String> = texts();
        /// Among these, the events to take: texts by the name of an attribute (`source`, `subject`,
        /// `time`, an extension), in which `*` matches any characters. All of them must match. A
        /// rejected event goes to the next less specific handler; if none is left,
        /// `handler_rejected` decides.
        matches as "match": Vec<(String, String)> = variables().alias(&["matcher"]).default("{}");
        /// Among these, the events to take by their content: values by a JSON pointer into the data
        /// (`/order/total`), an attribute or an extension (`subject`), such as `{ /total: {
        /// greater: 100 }, /region: eu }`. All conditions must hold, and `match` as well. A
        /// rejected event continues like one that `match` rejects. A type may have several handlers
        /// if all but the last have a `where`: the first that takes an event gets it.
        conditions as "where": Vec<FieldCondition> = each().or_empty();
        /// With `true`, the handler gets events in addition to the handler that they go to. Each
        /// has its own outcome: an event is settled once all of them are done, and is a dead letter
        /// if one of them gave up.
        fan_out: bool = flag().default("false");
        /// When an event is acknowledged: `outputs`, once all results are stored; `on_success`,
        /// once the handler is done with it. Results that are lost after that are counted, and not
        /// delivered again.
        ack: AckWhen = word().default("outputs");
        /// How many of the events that it makes from one event may come back in (`loopback`, at the
        /// top). More than that is a failed attempt.
        loopback: usize = count(0..=10_000_000).default("0");
        /// The pool that handles them.
        pool: String = text().default("default");
        /// Events with the same value here are handled one at a time, in their order: an attribute
        /// (`subject`), an extension, or a JSON pointer into the data (`/order/id`). By default,
        /// the `order_by` of the pool; if that is missing too, and with `none`, events have no
        /// order.
        order_by: Option<String> = text().optional();
        /// Events with the same value here are a share, such as those of a tenant: the workers'
        /// time is divided among shares. By default, the `share_by` of the pool; with `none`, its
        /// events are in the common share of events without a value. See docs/shares.md.
        share_by: Option<String> = text().optional();
        /// With `true`, an event without a value at `order_by` becomes a dead letter; otherwise
        /// it is handled without order.
        key_required: bool = flag().default("false");
        /// The reaction to a failed attempt. Options that are left out are those of the `retry` of
        /// the pool, if it has them.
        retry: Retry = group().live().default("{}");
        /// Wrappers around every attempt, the outermost first. docs/layers.md explains each of them
        /// and their order.
        layers: Vec<LayerConfig> = list().or_empty();
        .. /// What it does.
        kind: Chosen<Handlers>;
    }
}

words! {
    /// When an event is acknowledged.
    pub enum AckWhen {
        /// When its outputs are stored.
        Outputs = "outputs",
        /// When its handler is done with it.
        OnSuccess = "on_success",
    }
}

impl HandlerConfig {
    /// True when it takes every event of its types.
    pub fn takes_all(&self) -> bool {
        self.matches.is_empty() && self.conditions.is_empty()
    }

    /// Takes from its pool the options that it leaves out.
    pub(super) fn inherit(&mut self, pool: Option<&PoolConfig>, at: &mut At<'_>) {
        let own = self.order_by.take();
        let order_by = own.or_else(|| pool.and_then(|pool| pool.order_by.clone()));
        self.order_by = order_by.filter(|order_by| order_by != NONE);
        let own = self.share_by.take();
        let share_by = own.or_else(|| pool.and_then(|pool| pool.share_by.clone()));
        self.share_by = share_by.filter(|share_by| share_by != NONE);
        let Some(of_pool) = pool.and_then(|pool| pool.retry) else { return };
        let written = |option: &str| at.has(&format!("handlers.{}.retry.{option}", self.name));
        let own = self.retry;
        self.retry = Retry {
            attempts: if written("attempts") { own.attempts } else { of_pool.attempts },
            backoff: if written("backoff") { own.backoff } else { of_pool.backoff },
            total: own.total.or(of_pool.total),
        };
    }
}
