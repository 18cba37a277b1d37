//! What is done with events.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::http::{HttpAuth, HttpTls};
use greenroom_config::{
    At, Secret, bare, command, count, duration, durations, each, flag, group, list, number,
    options, path,
    schema::Group,
    size, text, texts,
    units::DurationRange,
    units::{DAY_MS, GIB},
    url, variables, word, words,
};

use super::{
    condition::FieldCondition,
    layer::LayerConfig,
    pool::{PoolConfig, Retry},
};

/// The `order_by` of a handler that keeps no order, whatever its pool says.
const NO_ORDER: &str = "none";

const NOTHING: &Group = &Group::without_settings("this handler");

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
        kind: HandlerKind;
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
        self.order_by = order_by.filter(|order_by| order_by != NO_ORDER);
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

options! {
    /// What it does.
    pub enum HandlerKind = "a handler" {
        /// The event goes to the outputs as it is.
        Pass as "pass" = bare(NOTHING);
        /// The event is written to the log.
        Log as "log" = bare(NOTHING);
        /// The event is acknowledged and goes nowhere.
        Drop as "drop" = bare(NOTHING);
        /// Waits, sometimes fails, then does as `pass`.
        Simulate(SimulateConfig) as "simulate" = group();
        /// Hands the event to long-lived worker processes, one for each worker of the pool.
        Exec(ExecConfig) as "exec" = group();
        /// Posts the event to a URL, as CloudEvents over HTTP.
        Http(HttpConfig) as "http" = group().live();
    }
}

options! {
    /// A stand-in for a real handler.
    pub struct SimulateConfig = "simulate" {
        /// How long an event takes, evenly distributed.
        latency: DurationRange = durations().default("0ms..5ms");
        /// The share of attempts that fail.
        failures: f64 = number(0.0..=1.0).default("0.01");
        /// Makes the failures the same in every run; random when left out.
        seed: Option<u64> = count(0..=i64::MAX as u64).optional();
    }
}

options! {
    /// One event per line on standard input, one result per line on standard output, standard
    /// error to the log.
    pub struct ExecConfig = "exec", then ExecConfig::beside_the_file {
        /// The program and its arguments. It is not run by a shell.
        command: Secret<Vec<String>> = command().secret();
        /// How long an event may take; then the process is killed and the event tried again.
        timeout: Duration = duration(1..=DAY_MS).default("30s");
        /// How many events a process has in hand at a time, from as many workers of the pool, which
        /// share it: with more than one, the next is in its pipe while it works on one. Those of
        /// one key are still handled one after the other.
        in_flight: usize = count(1..=1_024).default("1");
        /// How often a process that dies is started anew.
        restart: RestartConfig = group().default("{}");
        /// Environment variables for the process, added to those of greenroom.
        env: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// The directory in which the process runs; the directory of the configuration file
        /// when left out.
        cwd: Option<PathBuf> = path().optional();
    }
}

options! {
    /// A process that dies more often than this within the window is not started again before the
    /// window allows it: until then its handler pauses.
    #[derive(Copy, Eq)]
    pub struct RestartConfig = "restart" {
        /// How many times within the window.
        max: u32 = count(0..=1_000_000).default("3");
        /// The window.
        window: Duration = duration(1..=DAY_MS).default("60s");
    }
}

options! {
    /// 2xx settles; 408, 425, 429, 5xx, a timeout or a refused connection is tried again; 401
    /// and 403 pause the handler; any other answer makes a dead letter. A reload changes all of
    /// it.
    pub struct HttpConfig = "http" {
        /// Where to post to.
        url: Secret<String> = url().secret();
        /// Headers added to each request. `ce-*`, `content-type` and the like are written by
        /// greenroom and cannot be set.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// How the target is told who posts. Without it, by nothing but the URL and the headers.
        auth: Option<HttpAuth> = group().optional();
        /// Whom to trust, and what to show. Without it, the authorities that the system trusts.
        tls: Option<HttpTls> = group().optional();
        /// How long one attempt may take.
        timeout: Duration = duration(1..=DAY_MS).default("5s");
        /// The longest answer with events that is read; a longer one makes a dead letter. An
        /// answer without events may have any length.
        max_response: u64 = size(1024..=GIB).default("16MiB");
        /// `binary` sends the data as the body and the attributes as `ce-` headers;
        /// `structured` sends the event as JSON.
        mode: HttpMode = word().default("binary");
        /// With `true`, an event that was accepted goes to the outputs when the answer holds no
        /// event.
        pass: bool = flag().default("false");
        /// What follows from an answer, where that is to differ from the usual: a status
        /// (`404`), a class (`5xx`), a range (`520..529`), `timeout` or `connection`, each with
        /// `settle`, `retry`, `pause`, `reject` or `park`. The narrowest decides. `greenroom
        /// explain-status` prints what holds.
        status: Vec<(String, String)> = variables().default("{}");
    }
}

words! {
    /// How an event is written into a request.
    pub enum HttpMode {
        /// Data as the body, attributes as headers.
        Binary = "binary",
        /// The event as JSON.
        Structured = "structured",
    }
}

impl ExecConfig {
    /// Processes run beside the configuration file, unless something else is said.
    fn beside_the_file(mut self, at: &mut At<'_>) -> Option<Self> {
        let beside = Some(at.directory()).filter(|directory| !directory.as_os_str().is_empty());
        self.cwd = self.cwd.or_else(|| beside.map(PathBuf::from));
        Some(self)
    }
}
