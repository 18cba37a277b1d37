//! The configuration as the engine takes it: every default applied, every value in range, paths resolved.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use greenroom::{autoscale::Autoscale, event_pool::Engine, limits::Adaptive};
use greenroom_config::units::{DurationRange, Rate};

use super::layers::LayerConfig;

/// A whole configuration. Names are unique within each list, which follows the order of the file.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where events come from; at least one.
    pub inputs: Vec<InputConfig>,
    /// Pools of workers; `default` is always among them, and first where the file does not name it.
    pub pools: Vec<PoolConfig>,
    /// What handles which events; at least one.
    pub handlers: Vec<HandlerConfig>,
    /// Where handled events go; may be empty.
    pub outputs: Vec<OutputConfig>,
    /// True when they go to every output that matches.
    pub all_outputs: bool,
    /// What happens to an event that no handler takes.
    pub no_handler: NoHandler,
    /// What happens to an event that every `match` refuses.
    pub handler_rejected: NoHandler,
    /// What comes back in, where anything does.
    pub loopback: Option<LoopbackConfig>,
    /// The file of dead letters, appended to.
    pub dead_letters: PathBuf,
    /// How long draining may take.
    pub shutdown_deadline: Duration,
    /// When failures are an outage of the target.
    pub outage: OutageConfig,
    /// The admin listener; `None` where there is none.
    pub admin: Option<AdminConfig>,
}

/// The admin listener. Its `Debug` hides the token.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What every request has to show, where there is one.
    pub token: Option<String>,
}

impl fmt::Debug for AdminConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminConfig").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// One input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputConfig {
    /// Its name.
    pub name: String,
    /// What it reads.
    pub kind: InputKind,
    /// Events that may wait beside full pools.
    pub run_ahead: usize,
    /// Bytes that may be taken and not settled.
    pub in_flight: u64,
}

/// What an input reads.
#[derive(Debug, Clone, PartialEq)]
pub enum InputKind {
    /// A file, once.
    File {
        /// The file; `-` is standard input.
        path: PathBuf,
        /// The longest line that is read as an event, in bytes.
        max_event: u64,
        /// Where its positions are kept, where they are.
        checkpoint: Option<PathBuf>,
    },
    /// Events made up from a seed.
    Generator(GeneratorConfig),
}

/// Events made up from a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorConfig {
    /// How many; `None` means until a signal.
    pub count: Option<u64>,
    /// How fast; `None` means as fast as they are handled.
    pub rate: Option<Rate>,
    /// How many different subjects.
    pub keys: u64,
    /// The exponent of their distribution; 0 is even.
    pub zipf: f64,
    /// The event types, each as likely as the others; at least one.
    pub types: Vec<String>,
    /// The size of the data, in bytes.
    pub payload: u64,
    /// The seed.
    pub seed: u64,
}

/// One pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolConfig {
    /// Its name.
    pub name: String,
    /// How many events it handles at a time.
    pub workers: usize,
    /// How many events may wait, in all.
    pub queue: usize,
    /// What order there is.
    pub engine: Engine,
    /// How many events may wait behind one key; `None`: a quarter of the queue.
    pub max_per_key: Option<usize>,
    /// How many events of a key a handler is given at once, where that is more than one.
    pub batch: Option<Batch>,
    /// What happens when the queue is full.
    pub on_full: OnFull,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How often a panicking worker may be restarted.
    pub max_restarts: u32,
    /// What happens to a key whose event failed for good.
    pub on_final_failure: OnFinalFailure,
    /// True when the log tells what happens to it.
    pub event_stream: bool,
    /// How many attempts are started in such a time, at most.
    pub rate: Option<Rate>,
    /// How many events are in hand at once, at most.
    pub limit: Option<usize>,
    /// The same, found out while it works.
    pub adaptive: Option<Adaptive>,
    /// Between which sizes it changes its workers by itself.
    pub autoscale: Option<Autoscale>,
    /// How many threads of its own it has.
    pub dedicated_threads: Option<usize>,
    /// What orders the events of handlers that do not say; resolved in [`HandlerConfig::order_by`].
    pub order_by: Option<String>,
    /// What its handlers inherit; resolved in [`HandlerConfig::attempts`] and beside.
    pub retry: Option<Retry>,
    /// Its share of the starts where handlers compute.
    pub weight: Option<u32>,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How often an event is tried in all; at least 1.
    pub attempts: u32,
    /// The first and the longest wait between attempts.
    pub backoff: DurationRange,
    /// How long after the first failure attempts are made.
    pub total: Option<Duration>,
}

/// What comes back in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopbackConfig {
    /// Event types and patterns; at least one.
    pub on: Vec<String>,
    /// How much may be on its way at once.
    pub room: usize,
}

/// How large batches are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The most events.
    pub events: usize,
    /// How long one that is not full waits for more.
    pub within: Duration,
    /// With how many bytes one is full, too.
    pub bytes: Option<usize>,
}

/// What happens to a key whose event failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFinalFailure {
    /// The event becomes a dead letter, and the next one is handled.
    Skip,
    /// It waits with the event at its head.
    Park,
    /// The event becomes a dead letter, and the pool stops.
    Stop,
}

/// What happens to an event whose pool is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// It waits, and after a while its input does.
    Pause,
    /// It is refused to its source.
    Reject,
    /// It becomes a dead letter.
    DeadLetter,
}

/// What happens to an event that no handler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHandler {
    /// It becomes a dead letter.
    DeadLetter,
    /// It is acknowledged and counted.
    Ignore,
    /// It is refused to its source.
    Refuse,
}

/// One handler.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerConfig {
    /// Its name.
    pub name: String,
    /// Event types and patterns (`*` one segment, `**` any number); at least one.
    pub on: Vec<String>,
    /// Of these, the events to take: attributes and what they have to be like.
    pub matches: Vec<(String, String)>,
    /// True when it gets events beside the handler that they go to.
    pub fan_out: bool,
    /// True when an event is acknowledged before its outputs are stored.
    pub ack_on_success: bool,
    /// How many of the events that it makes of one may come back in.
    pub loopback: usize,
    /// The pool, which exists.
    pub pool: String,
    /// What orders its events: an attribute, an extension, or a JSON pointer (RFC 6901, with the leading `/`) into
    /// the data. `None` means no order.
    pub order_by: Option<String>,
    /// True when an event without that value becomes a dead letter; otherwise it is handled without order.
    pub key_required: bool,
    /// How often an event is tried in all; at least 1.
    pub attempts: u32,
    /// The first and the longest wait between attempts.
    pub backoff: DurationRange,
    /// How long after the first failure attempts are made.
    pub retry_total: Option<Duration>,
    /// What is done around every attempt, the outermost first.
    pub layers: Vec<LayerConfig>,
    /// What it does.
    pub kind: HandlerKind,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerKind {
    /// The event goes to the outputs.
    Pass,
    /// The event is written to the log.
    Log,
    /// The event goes nowhere.
    Drop,
    /// Waits, sometimes fails, then passes.
    Simulate {
        /// How long an event takes.
        latency: DurationRange,
        /// The share of attempts that fail, from 0 to 1.
        failures: f64,
        /// The seed; `None` means random.
        seed: Option<u64>,
    },
    /// Worker processes.
    Exec(ExecConfig),
    /// CloudEvents over HTTP.
    Http(HttpConfig),
}

/// Worker processes, one for each worker of the pool. Its `Debug` hides what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecConfig {
    /// The program and its arguments; at least the program.
    pub command: Vec<String>,
    /// How long an event may take.
    pub timeout: Duration,
    /// How often a process that dies is started anew within `restart_window`.
    pub restart_max: u32,
    /// The window of `restart_max`.
    pub restart_window: Duration,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Where the process runs; `None` is the current directory.
    pub cwd: Option<PathBuf>,
}

impl fmt::Debug for ExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecConfig").field("program", &self.command.first()).finish_non_exhaustive()
    }
}

/// CloudEvents over HTTP. Its `Debug` hides the URL, which may hold credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where to post to: `http` or `https`, with a host.
    pub url: String,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// The longest answer with events that is read, in bytes.
    pub max_response: u64,
    /// How the event is written.
    pub mode: HttpMode,
    /// True when an accepted event goes on although the answer holds none.
    pub pass: bool,
    /// Rows that replace rows of the status map, as they were written; each names a row and a verdict.
    pub status: Vec<(String, String)>,
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// How an event is written into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMode {
    /// Data as the body, attributes as headers.
    Binary,
    /// The event as JSON.
    Structured,
}

/// One output.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputConfig {
    /// Its name.
    pub name: String,
    /// Event types and patterns; at least one.
    pub on: Vec<String>,
    /// The file.
    pub path: PathBuf,
    /// True when every run starts the file anew.
    pub truncate: bool,
}

/// When failures are an outage of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageConfig {
    /// So many failed attempts in a row, over at least two events.
    pub failures: u32,
    /// So long with failures only.
    pub window: Duration,
    /// How long an outage may last after the inputs have ended.
    pub limit: Duration,
}
