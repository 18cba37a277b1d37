//! What is done with events.

use greenroom_config::{
    At, Chosen, count, each, flag, group, list, options, text, texts, variables, word, words,
};

use super::{
    condition::FieldCondition,
    layer::LayerConfig,
    pool::{PoolConfig, Retry},
};
use crate::config::kinds::Handlers;

/// The `order_by` or `share_by` of a handler that has none, whatever its pool says.
const NONE: &str = "none";

options! {
    /// What is done with the events of some types: exactly one kind.
    pub struct HandlerConfig named name = "a handler" {
        /// The event types: a type, a pattern or a list. `*` stands for one segment between
        /// dots, `**` for any number of them.
        on: Vec<String> = texts();
        /// Of these, the events to take: texts by the name of an attribute (`source`,
        /// `subject`, `time`, an extension), in which `*` stands for any characters. All of
        /// them have to hold. An event that is not taken goes to the next less specific
        /// handler; when none is left, `handler_rejected` says what happens to it.
        matches as "match": Vec<(String, String)> = variables().alias(&["matcher"]).default("{}");
        /// Of these, the events to take by what is in them: values by a JSON pointer into the
        /// data (`/order/total`), an attribute or an extension (`subject`), such as
        /// `{ /total: { greater: 100 }, /region: eu }`. All of it has to hold, and `match` as
        /// well. An event that is not taken goes on as one that `match` does not take. Of one
        /// type there may be several handlers, if those before the last have a `where`: the first
        /// that takes an event gets it.
        conditions as "where": Vec<FieldCondition> = each().or_empty();
        /// With `true`, the handler gets events beside the one that they go to, each with an
        /// outcome of its own: an event is settled when all of them are done, and is a dead
        /// letter when one of them gave it up.
        fan_out: bool = flag().default("false");
        /// When an event is acknowledged: `outputs`, when all that was made of it is stored;
        /// `on_success`, when the handler was done with it. What is lost after that is counted,
        /// and is not delivered again.
        ack: AckWhen = word().default("outputs");
        /// How many of the events that it makes of one may come back in (`loopback`, at the
        /// top). More than that is a failed attempt.
        loopback: usize = count(0..=10_000_000).default("0");
        /// The pool that handles them.
        pool: String = text().default("default");
        /// Events with the same value here are handled one at a time, in their order: an
        /// attribute (`subject`), an extension, or a JSON pointer into the data (`/order/id`).
        /// When this is not given, as the `order_by` of the pool says; where there is none
        /// either, and with `none`, events have no order.
        order_by: Option<String> = text().optional();
        /// Events with the same value here are a share, such as those of a tenant: workers' time is
        /// divided among shares. When this is not given, as the `share_by` of the pool says; with
        /// `none`, its events have no share, and so one in common. docs/shares.md says more.
        share_by: Option<String> = text().optional();
        /// With `true`, an event without a value at `order_by` becomes a dead letter; otherwise
        /// it is handled without order.
        key_required: bool = flag().default("false");
        /// What happens after a failed attempt. What is left out is as in the `retry` of the
        /// pool, where that says it.
        retry: Retry = group().live().default("{}");
        /// What is done around every attempt, the outermost first. docs/layers.md says what
        /// each is for, and in which order.
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
        /// When its handler was done with it.
        OnSuccess = "on_success",
    }
}

impl HandlerConfig {
    /// True when it takes every event of its types.
    pub fn takes_all(&self) -> bool {
        self.matches.is_empty() && self.conditions.is_empty()
    }

    /// Takes from its pool what it does not say itself.
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
