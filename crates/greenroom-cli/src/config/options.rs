//! Every option of the configuration, written down once.

use greenroom::event_pool::{Engine, Preset};
use greenroom_config::schema::{
    Group,
    Kind::{self, *},
    Opt,
    Presence::{self, *},
};

const DAY_MS: u64 = 86_400_000;
const GIB: u64 = 1 << 30;

/// The presets and engines of the library, by name.
static PRESETS: [&str; Preset::ALL.len()] = {
    let (mut names, mut at) = ([""; Preset::ALL.len()], 0);
    while at < names.len() {
        names[at] = Preset::ALL[at].name();
        at += 1;
    }
    names
};
static ENGINES: [&str; Engine::ALL.len()] = {
    let (mut names, mut at) = ([""; Engine::ALL.len()], 0);
    while at < names.len() {
        names[at] = Engine::ALL[at].name();
        at += 1;
    }
    names
};

const fn opt(name: &'static str, kind: Kind, presence: Presence, doc: &'static str) -> Opt {
    Opt { name, aliases: &[], kind, presence, doc }
}

const fn later(name: &'static str, text: &'static str) -> Opt {
    Opt { name, aliases: &[], kind: Later(text), presence: Optional, doc: "" }
}

const fn group(title: &'static str, doc: &'static str, options: &'static [Opt]) -> Group {
    Group { title, doc, options, one_of: &[] }
}

/// The whole file.
pub(super) static ROOT: Group = group(
    "the configuration",
    "One file says where events come from, which pools of workers there are, what handles which events, and where \
     results and dead letters go. Relative paths start at the directory of the file.",
    &[
        opt("inputs", Named(&INPUT), Required, "Where events come from, by name."),
        opt("pools", Named(&POOL), Optional, "Pools of workers, by name. `default` always exists."),
        opt("handlers", Named(&HANDLER), Required, "What handles which events, by name."),
        opt(
            "outputs",
            Named(&OUTPUT),
            Optional,
            "Where handled events go, by name. Each event goes to the first output that matches, unless `all_outputs` says otherwise.",
        ),
        opt(
            "all_outputs",
            Flag,
            Default("false"),
            "With `true`, a handled event goes to every output that matches, rather than to the first. It is settled when all of \
             them have stored it.",
        ),
        opt(
            "buffer",
            Count { min: 1, max: 10_000_000 },
            Default("1000"),
            "How many events may wait in a pool, in all: the `queue` of every pool that names neither `queue` nor `inbox_size` nor a \
             `preset`.",
        ),
        opt(
            "no_handler",
            Choice { words: &["dead_letter", "ignore", "refuse"], later: &[] },
            Default("dead_letter"),
            "What happens to an event that no handler takes: `dead_letter` stores it with the reason, `ignore` \
             acknowledges and counts it, `refuse` leaves it unacknowledged, and the run ends with exit code 3.",
        ),
        opt(
            "handler_rejected",
            Choice { words: &["dead_letter", "ignore", "refuse"], later: &[] },
            Default("dead_letter"),
            "The same for an event that handlers are named for, but whose `match` takes none of them.",
        ),
        opt(
            "loopback",
            Group(&LOOPBACK),
            Optional,
            "Lets what handlers make come back in, instead of going to an output.",
        ),
        opt(
            "dead_letters",
            Group(&DEAD_LETTERS),
            Default("{}"),
            "Where events go that could not be handled.",
        ),
        opt("shutdown", Group(&SHUTDOWN), Default("{}"), "How a run ends."),
        opt(
            "outage",
            Group(&OUTAGE),
            Default("{}"),
            "When failures are an outage of the target and no fault of the events.",
        ),
        opt(
            "admin",
            Group(&ADMIN),
            Optional,
            "Where a running greenroom can be asked what it does, and told what to change. Without it, it listens nowhere.",
        ),
    ],
);

/// `inputs.<name>`
pub(super) static INPUT: Group = Group {
    title: "an input",
    doc: "Where events come from: exactly one kind.",
    options: &[
        opt(
            "file",
            Group(&FILE_INPUT),
            Optional,
            "Reads a file once, from its start or its checkpoint to its end.",
        ),
        opt(
            "generator",
            Group(&GENERATOR),
            Optional,
            "Makes events up, the same ones for the same seed.",
        ),
        opt(
            "run_ahead",
            Count { min: 1, max: 10_000_000 },
            Default("10000"),
            "How many of its events may wait beside full pools before it pauses. Until then a full pool stops no other.",
        ),
        opt(
            "in_flight",
            Size { min: 1024, max: 1024 * GIB },
            Default("64MiB"),
            "How many bytes of its events may be taken and not settled before it pauses. An event that is larger passes while \
             nothing else of its input is in flight.",
        ),
        later("http", "`http` inputs are not part of this version"),
        later("kafka", "`kafka` inputs are not part of this version"),
        later("nats", "`nats` inputs are not part of this version"),
        later(
            "memory",
            "`memory` inputs are for programs that use the library; they have no configuration",
        ),
    ],
    one_of: &["file", "generator"],
};

static FILE_INPUT: Group = group(
    "a file input",
    "One CloudEvent (JSON) on each line; plain, gzip or zstd, told apart by their content.",
    &[
        opt("path", Path, Required, "The file. `-` is standard input."),
        opt(
            "max_event",
            Size { min: 1024, max: GIB },
            Default("16MiB"),
            "The longest line that is read as an event. Of a longer one, a dead letter keeps so many bytes, and its length and SHA-256.",
        ),
        later("follow", "`follow` (tailing a growing file) is not part of this version"),
        opt(
            "checkpoint",
            Path,
            Optional,
            "A file in which the lines that are done are kept, in whichever order they were done: a later run goes on from \
             there. Made when it is missing. Without it, each run reads the file from its start.",
        ),
    ],
);

static GENERATOR: Group = group(
    "a generator",
    "Events made up from a seed, for trying things out and for measuring.",
    &[
        opt(
            "count",
            Count { min: 1, max: 1_000_000_000_000 },
            Optional,
            "How many. Without it, until a signal.",
        ),
        opt("rate", Rate, Optional, "How fast. Without it, as fast as they are handled."),
        opt(
            "keys",
            Count { min: 1, max: 100_000_000 },
            Default("1000"),
            "How many different subjects.",
        ),
        opt(
            "zipf",
            Number { min: 0.0, max: 10.0 },
            Default("1.0"),
            "How uneven the subjects are: 0 is even, 1 gives the n-th of them a share of 1/n.",
        ),
        opt(
            "types",
            Texts,
            Default("[greenroom.generated]"),
            "The event types, each as likely as the others.",
        ),
        opt(
            "payload",
            Size { min: 0, max: 16 << 20 },
            Default("100"),
            "The size of the data of each event.",
        ),
        opt(
            "seed",
            Count { min: 0, max: i64::MAX as u64 },
            Default("1"),
            "The same seed makes the same events.",
        ),
    ],
);

/// `pools.<name>`
pub(super) static POOL: Group = group(
    "a pool",
    "Workers that share a queue. A pool that is full or slow does not stop another.",
    &[
        opt(
            "preset",
            Choice { words: &PRESETS, later: &[] },
            Optional,
            "Sizes by what the pool is for, `workers` x `inbox_size`: `low_latency` 256 x 100, `standard` 256 x 1000, \
             `high_throughput` 512 x 5000, `ultra_throughput` 1024 x 10000, `memory_limited` 128 x 500; `orders` 256 x 500, \
             `logs` 512 x 10000, `iot` 1024 x 5000, `edge` 128 x 200. `workers`, `queue` and `inbox_size` override it.",
        ),
        Opt {
            name: "workers",
            aliases: &["pool_size"],
            kind: Count { min: 1, max: 65_536 },
            presence: Default("1"),
            doc: "How many events the pool handles at a time. With a `preset`, as many as that says.",
        },
        opt(
            "queue",
            Count { min: 1, max: 10_000_000 },
            Optional,
            "How many events may wait, in all; as many as `buffer` (at the top) says when neither this nor `inbox_size` nor a \
             `preset` is given.",
        ),
        opt(
            "inbox_size",
            Count { min: 1, max: 10_000_000 },
            Optional,
            "How many events may wait for each worker: another way to write `queue`, which is then workers x inbox_size.",
        ),
        opt(
            "max_per_key",
            Count { min: 1, max: 10_000_000 },
            Optional,
            "How many events may wait behind one key (a value of `order_by`) that is being handled, waits for another attempt or \
             is parked, so that one key cannot fill the queue; a quarter of it when this is not given. What comes above that is \
             refused behind a parked key, and otherwise treated as `on_full` says; it delays no other key.",
        ),
        opt(
            "engine",
            Choice { words: &ENGINES, later: &[] },
            Default("keyed"),
            "What order there is: `keyed` keeps that of each `order_by` value, whichever worker is free handles it; `sticky` \
             gives each value to the same worker, so that those of one worker wait for one another; `shared` keeps none, whatever \
             handlers say.",
        ),
        opt(
            "order_by",
            Text,
            Optional,
            "What orders the events of its handlers that have no `order_by` of their own; takes what that takes.",
        ),
        opt(
            "on_full",
            Choice { words: &["pause", "reject", "dead_letter"], later: &[] },
            Default("pause"),
            "What happens when the queue is full: `pause` lets its events wait and, after a while, their input; \
             `reject` refuses them to the source; `dead_letter` stores them.",
        ),
        opt(
            "max_restarts",
            Count { min: 0, max: 1_000_000 },
            Default("3"),
            "How often a worker that panics may be restarted before it is given up.",
        ),
        opt(
            "enable_event_stream",
            Flag,
            Default("true"),
            "Whether the log tells what happens to the pool: workers that are restarted or given up, a queue that is full.",
        ),
        opt(
            "on_final_failure",
            Choice { words: &["skip", "park", "stop"], later: &[] },
            Default("skip"),
            "What happens to a key whose event failed for good: `skip` stores the event as a dead letter and goes on with the \
             next; `park` keeps the event and all that follow it of its key until somebody decides (docs/admin.md), and refuses \
             them when the run ends, so that nothing of the key is ever handled out of order; other keys go on meanwhile \
             (docs/order.md); that needs `engine: keyed`; `stop` stores the event, stops the pool, and ends the run.",
        ),
        opt(
            "rate",
            Rate,
            Optional,
            "How many attempts are started in such a time, at most. Without it, as many as the workers manage.",
        ),
        opt(
            "limit",
            CountOr { min: 1, max: 65_536, group: &LIMIT },
            Optional,
            "How many events are in hand at once, at most, where that is to be fewer than the workers: a number, or `adaptive` to have \
             it found out. Unlike `workers`, it leaves the processes of an `exec` handler running when it is lowered.",
        ),
        opt(
            "weight",
            Count { min: 1, max: 10_000 },
            Optional,
            "The pool's share of the starts of handlers, where the handlers of several pools compute and compete for threads: with \
             three times the weight, three times the starts. As soon as one pool has a weight, those without have 1. Attempts that \
             wait for something (`http`, `exec`) take no thread, and no share.",
        ),
        opt(
            "dedicated_threads",
            Count { min: 1, max: 1_024 },
            Optional,
            "Runs the workers on so many threads of the pool's own, for handlers that compute or block: otherwise they hold up the \
             inputs and every other pool. As many as there are cores for those that compute, as many as workers for those that block.",
        ),
        opt(
            "retry",
            Group(&RETRY),
            Optional,
            "What happens after a failed attempt of its handlers, each of which may override any part of it.",
        ),
        opt(
            "timeout",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Optional,
            "How long an attempt may take in this pool, whatever its handler is; without limit when this is not given. What it did \
             until then is not known. `exec` and `http` have timeouts of their own, which name what happened.",
        ),
        opt(
            "autoscale",
            Group(&AUTOSCALE),
            Optional,
            "Lets the pool change its workers by itself, between bounds. It begins with `workers`, or with `min` when neither that nor \
             a `preset` is given.",
        ),
        later("autotune", "`autotune` is not part of this version"),
        opt(
            "batch",
            Group(&BATCH),
            Optional,
            "Hands a handler several events of one key at once. `http` posts them together, as a batch of CloudEvents; other \
             handlers get them one after the other, without a turn of the pool between them.",
        ),
    ],
);

/// `handlers.<name>`
pub(super) static HANDLER: Group = Group {
    title: "a handler",
    doc: "What is done with the events of some types: exactly one kind.",
    options: &[
        opt(
            "on",
            Texts,
            Required,
            "The event types: a type, a pattern or a list. `*` stands for one segment between dots, `**` for any number of them.",
        ),
        Opt {
            name: "match",
            aliases: &["matcher"],
            kind: Variables,
            presence: Default("{}"),
            doc: "Of these, the events to take: texts by the name of an attribute (`source`, `subject`, `time`, an extension), in \
                  which `*` stands for any characters. All of them have to hold. An event that is not taken goes to the next less \
                  specific handler; when none is left, `handler_rejected` says what happens to it.",
        },
        opt(
            "fan_out",
            Flag,
            Default("false"),
            "With `true`, the handler gets events beside the one that they go to, each with an outcome of its own: an event is \
             settled when all of them are done, and is a dead letter when one of them gave it up.",
        ),
        opt(
            "ack",
            Choice { words: &["outputs", "on_success"], later: &[] },
            Default("outputs"),
            "When an event is acknowledged: `outputs`, when all that was made of it is stored; `on_success`, when the handler was \
             done with it. What is lost after that is counted, and is not delivered again.",
        ),
        opt(
            "loopback",
            Count { min: 0, max: 10_000_000 },
            Default("0"),
            "How many of the events that it makes of one may come back in (`loopback`, at the top). More than that is a failed \
             attempt.",
        ),
        opt("pool", Text, Default("default"), "The pool that handles them."),
        opt(
            "order_by",
            Text,
            Optional,
            "Events with the same value here are handled one at a time, in their order: an attribute (`subject`), an \
             extension, or a JSON pointer into the data (`/order/id`). When this is not given, as the `order_by` of the pool says; where \
             there is none either, and with `none`, events have no order.",
        ),
        opt(
            "key_required",
            Flag,
            Default("false"),
            "With `true`, an event without a value at `order_by` becomes a dead letter; otherwise it is handled without order.",
        ),
        opt(
            "retry",
            Group(&RETRY),
            Default("{}"),
            "What happens after a failed attempt. What is left out is as in the `retry` of the pool, where that says it.",
        ),
        opt("pass", Group(&NOTHING), Optional, "The event goes to the outputs as it is."),
        opt("log", Group(&NOTHING), Optional, "The event is written to the log."),
        opt("drop", Group(&NOTHING), Optional, "The event is acknowledged and goes nowhere."),
        opt("simulate", Group(&SIMULATE), Optional, "Waits, sometimes fails, then does as `pass`."),
        opt(
            "exec",
            Group(&EXEC),
            Optional,
            "Hands the event to long-lived worker processes, one for each worker of the pool.",
        ),
        opt("http", Group(&HTTP), Optional, "Posts the event to a URL, as CloudEvents over HTTP."),
        opt(
            "layers",
            List(&LAYER),
            Optional,
            "What is done around every attempt, the outermost first. docs/layers.md says what each is for, and in which order.",
        ),
        later(
            "timeout",
            "`timeout` belongs inside `exec` or `http`, or among the layers: `layers: [{ timeout: 5s }]`",
        ),
        later(
            "rate",
            "the rate of a handler is one of its layers: write `layers: [{ rate: 20/s }]`; a pool has a `rate`, too",
        ),
    ],
    one_of: &["pass", "log", "drop", "simulate", "exec", "http"],
};

static NOTHING: Group = group("this handler", "Has no options.", &[]);

static LIMIT: Group = group(
    "a limit",
    "In place of a number.",
    &[opt(
        "adaptive",
        Group(&ADAPTIVE),
        Required,
        "As many as the target bears, found out by how long attempts take and how many fail.",
    )],
);

static ADAPTIVE: Group = group(
    "an adaptive limit",
    "Grows while attempts take no longer than at rest, and shrinks when they do, or when many fail. The admin listener tells where it \
     stands.",
    &[
        opt(
            "max",
            Count { min: 1, max: 65_536 },
            Required,
            "The largest limit; more than there are workers is never used.",
        ),
        opt("min", Count { min: 1, max: 65_536 }, Default("1"), "The smallest limit."),
        opt(
            "initial",
            Count { min: 1, max: 65_536 },
            Optional,
            "The limit at the start; 20, or what is nearest to that within the bounds, when this is not given.",
        ),
        opt(
            "window",
            Duration { min_ms: 1, max_ms: 3_600_000 },
            Default("200ms"),
            "The least time between two decisions. A window is never shorter than attempts take.",
        ),
        opt(
            "tolerance",
            Number { min: 1.0, max: 100.0 },
            Default("1.5"),
            "How many times slower than at rest attempts may be. A higher one bears more of a spread, and more of a queue at the \
             target.",
        ),
        opt(
            "observe",
            Flag,
            Default("false"),
            "With `true`, nothing is held back: the admin listener tells what the limit would be.",
        ),
    ],
);

static AUTOSCALE: Group = group(
    "autoscale",
    "Looked at once a second: a pool grows when its workers are busy and what waits is late, and shrinks to what was needed when \
     less was enough for a while.",
    &[
        opt("min", Count { min: 1, max: 65_536 }, Default("1"), "The fewest workers."),
        opt(
            "max",
            Count { min: 1, max: 65_536 },
            Required,
            "The most workers: as many as the target bears at once.",
        ),
        opt(
            "target_age",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("100ms"),
            "How long an event may wait before the pool is late.",
        ),
        opt(
            "up_cooldown",
            Duration { min_ms: 0, max_ms: DAY_MS },
            Default("5s"),
            "The least time between a change and the next growth. As long as a worker needs to start and to show what it can do.",
        ),
        opt(
            "down_cooldown",
            Duration { min_ms: 0, max_ms: DAY_MS },
            Default("30s"),
            "For how long fewer workers must have been enough before the pool shrinks.",
        ),
        opt(
            "busy_share",
            Number { min: 0.01, max: 1.0 },
            Default("0.8"),
            "The share of their time that workers may be busy. A late pool grows only where they are busier.",
        ),
    ],
);

/// `handlers.<name>.layers`
static LAYER: Group = Group {
    title: "a layer",
    doc: "Each item is one layer. Those without settings may be written as a word: `[tracing, { timeout: 5s }, metrics]`.",
    options: &[
        opt(
            "timeout",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Optional,
            "How long an attempt may take inside of this layer. Then it is dropped at its next await, and is tried again as any \
             failure.",
        ),
        Opt {
            name: "rate",
            aliases: &["rate_limit"],
            kind: Rate,
            presence: Optional,
            doc: "How many attempts are made in such a time, over all workers. What waits for its turn holds its worker; the `rate` of \
                  a pool holds none.",
        },
        opt(
            "circuit_breaker",
            Group(&CIRCUIT_BREAKER),
            Optional,
            "While what the attempts call is down, they wait, and one at a time tries.",
        ),
        Opt {
            name: "deduplication",
            aliases: &["deduplicate"],
            kind: Group(&DEDUPLICATION),
            presence: Optional,
            doc: "An event whose source and id are those of one that was acknowledged is acknowledged without being handled.",
        },
        opt(
            "validation",
            Variables,
            Optional,
            "JSON Schemas by event type or pattern: `{ \"order.*\": order.schema.json }`, each a file. An event whose data does not fit \
             those of its type becomes a dead letter that names the problems; one of a type without a schema passes. The files are \
             read when greenroom starts.",
        ),
        opt(
            "correlation",
            Group(&NO_SETTINGS),
            Optional,
            "An event without a `correlationid` begins a flow, which has its id; what is made of it has that, too.",
        ),
        opt(
            "tracing",
            Group(&NO_SETTINGS),
            Optional,
            "A span for each attempt in the log, at the level `info`: type, id, source, pool, handler, worker, attempt.",
        ),
        opt(
            "metrics",
            Group(&NO_SETTINGS),
            Optional,
            "Counts attempts by what they end in, and how long they take. The admin listener tells (`/api/handlers/NAME`), and the \
             log at the end.",
        ),
    ],
    one_of: &[
        "timeout",
        "rate",
        "circuit_breaker",
        "deduplication",
        "validation",
        "correlation",
        "tracing",
        "metrics",
    ],
};

static NO_SETTINGS: Group = group("this layer", "Has no settings.", &[]);

static CIRCUIT_BREAKER: Group = group(
    "a circuit breaker",
    "An outage of a single handler is noticed without it (`outage`); it is for handlers that call the same system.",
    &[
        opt(
            "failures",
            Count { min: 1, max: 1_000_000 },
            Default("5"),
            "It opens after so many failed attempts in a row: as many as a healthy system never has.",
        ),
        opt(
            "open_for",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("10s"),
            "Attempts wait for so long, then one tries: as long as the system takes to come back.",
        ),
        opt(
            "shared",
            Text,
            Optional,
            "A name. The circuit breakers of one name are one, in whichever handlers they stand, and have the same settings.",
        ),
    ],
);

static DEDUPLICATION: Group = group(
    "deduplication",
    "In memory: a run that starts anew has seen nothing.",
    &[
        opt(
            "within",
            Duration { min_ms: 1, max_ms: 30 * DAY_MS },
            Default("10m"),
            "How long an acknowledged event is remembered.",
        ),
        opt(
            "remember",
            Count { min: 1, max: 100_000_000 },
            Default("100_000"),
            "How many are remembered at most, each with some 100 bytes; at least as many as come `within` that time.",
        ),
    ],
);

static BATCH: Group = group(
    "a batch",
    "Events of one key that wait together are handled together, each with a result of its own. Events without a key are \
     taken as they lie.",
    &[
        opt("events", Count { min: 2, max: 10_000 }, Required, "The most events of a batch."),
        opt(
            "within",
            Duration { min_ms: 0, max_ms: 60_000 },
            Default("0ms"),
            "How long a batch that is not full waits for more of its key, which takes up its worker.",
        ),
        opt(
            "bytes",
            Size { min: 1, max: GIB },
            Optional,
            "About how many bytes fill a batch, too; the event with which it gets there is its last.",
        ),
    ],
);

static RETRY: Group = group(
    "retry",
    "A failed event is tried again in its place: later events of its key wait, the worker does not.",
    &[
        opt(
            "attempts",
            Count { min: 1, max: 1_000_000 },
            Default("5"),
            "How often an event is tried in all; then it is a dead letter.",
        ),
        opt(
            "backoff",
            DurationRange,
            Default("200ms..30s"),
            "The wait before the second attempt and the longest wait; it doubles in between, with jitter.",
        ),
        opt(
            "total",
            Duration { min_ms: 1, max_ms: 30 * DAY_MS },
            Optional,
            "No further attempt is made once the first failure is so long ago; without limit when this is not given. An outage \
             does not count.",
        ),
    ],
);

static LOOPBACK: Group = group(
    "loopback",
    "What comes back in belongs to the event that it was made of, which is settled when all of it is. Room for what a handler \
     may send back is reserved before it starts, so no cycle can stand still.",
    &[
        opt("on", Texts, Required, "The event types that come back: a type, a pattern or a list."),
        opt(
            "room",
            Count { min: 1, max: 10_000_000 },
            Default("1000"),
            "How many events may be on their way back, or reserved for, at once. At least what each handler declares; for all \
             workers to have something to do, that times the workers and the queue of its pool.",
        ),
    ],
);

static SIMULATE: Group = group(
    "simulate",
    "A stand-in for a real handler.",
    &[
        opt(
            "latency",
            DurationRange,
            Default("0ms..5ms"),
            "How long an event takes, evenly distributed.",
        ),
        opt(
            "failures",
            Number { min: 0.0, max: 1.0 },
            Default("0.01"),
            "The share of attempts that fail.",
        ),
        opt(
            "seed",
            Count { min: 0, max: i64::MAX as u64 },
            Optional,
            "Makes the failures the same in every run; random when left out.",
        ),
    ],
);

static EXEC: Group = group(
    "exec",
    "One event per line on standard input, one result per line on standard output, standard error to the log.",
    &[
        opt(
            "command",
            Command,
            Required,
            "The program and its arguments. It is not run by a shell.",
        ),
        opt(
            "timeout",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("30s"),
            "How long an event may take; then the process is killed and the event tried again.",
        ),
        opt(
            "restart",
            Group(&RESTART),
            Default("{}"),
            "How often a process that dies is started anew.",
        ),
        opt(
            "env",
            Variables,
            Default("{}"),
            "Environment variables for the process, added to those of greenroom.",
        ),
        opt(
            "cwd",
            Path,
            Optional,
            "The directory in which the process runs; the directory of the configuration file when left out.",
        ),
    ],
);

static RESTART: Group = group(
    "restart",
    "A process that dies more often than this within the window is given up.",
    &[
        opt(
            "max",
            Count { min: 0, max: 1_000_000 },
            Default("3"),
            "How many times within the window.",
        ),
        opt("window", Duration { min_ms: 1, max_ms: DAY_MS }, Default("60s"), "The window."),
    ],
);

static HTTP: Group = group(
    "http",
    "2xx settles; 408, 425, 429, 5xx, a timeout or a refused connection is tried again; 401 and 403 pause the handler; \
     any other answer makes a dead letter.",
    &[
        opt("url", Url, Required, "Where to post to."),
        opt(
            "timeout",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("5s"),
            "How long one attempt may take.",
        ),
        opt(
            "max_response",
            Size { min: 1024, max: GIB },
            Default("16MiB"),
            "The longest answer with events that is read; a longer one makes a dead letter. An answer without events may have any length.",
        ),
        opt(
            "mode",
            Choice { words: &["binary", "structured"], later: &[] },
            Default("binary"),
            "`binary` sends the data as the body and the attributes as `ce-` headers; `structured` sends the event as JSON.",
        ),
        opt(
            "pass",
            Flag,
            Default("false"),
            "With `true`, an event that was accepted goes to the outputs when the answer holds no event.",
        ),
        opt(
            "status",
            Variables,
            Default("{}"),
            "What follows from an answer, where that is to differ from the usual: a status (`404`), a class (`5xx`), a range \
             (`520..529`), `timeout` or `connection`, each with `settle`, `retry`, `pause`, `reject` or `park`. The narrowest decides. \
             `greenroom explain-status` prints what holds.",
        ),
    ],
);

/// `outputs.<name>`
pub(super) static OUTPUT: Group = Group {
    title: "an output",
    doc: "Where handled events go: exactly one kind.",
    options: &[
        opt(
            "on",
            Texts,
            Default("\"**\""),
            "The event types: a type, a pattern or a list, as for handlers.",
        ),
        opt(
            "file",
            Group(&FILE_OUTPUT),
            Optional,
            "Appends to a file, one CloudEvent (JSON) per line, in the order of handling.",
        ),
        later("kafka", "`kafka` outputs are not part of this version"),
        later("nats", "`nats` outputs are not part of this version"),
        later(
            "http",
            "`http` outputs are not part of this version; an `http` handler posts events",
        ),
        later("all", "`all` holds for all outputs: write `all_outputs: true`, at the top"),
    ],
    one_of: &["file"],
};

static FILE_OUTPUT: Group = group(
    "a file output",
    "Written and synced before the events are acknowledged.",
    &[
        opt(
            "path",
            Path,
            Required,
            "The file. It is created when it is missing; its directory is not.",
        ),
        opt("truncate", Flag, Default("false"), "With `true`, every run starts the file anew."),
    ],
);

static DEAD_LETTERS: Group = group(
    "dead_letters",
    "An event that becomes a dead letter is acknowledged once the letter is stored.",
    &[
        opt(
            "file",
            Group(&DEAD_LETTER_FILE),
            Default("{}"),
            "Appends to a file, one letter (JSON) per line.",
        ),
        later(
            "store",
            "the `store` for dead letters is not part of this version; use `file: { path: dead-letters.ndjson }`",
        ),
        later(
            "kafka",
            "`kafka` dead letters are not part of this version; use `file: { path: dead-letters.ndjson }`",
        ),
        later(
            "nats",
            "`nats` dead letters are not part of this version; use `file: { path: dead-letters.ndjson }`",
        ),
    ],
);

static DEAD_LETTER_FILE: Group = group(
    "a dead-letter file",
    "One JSON object per line: the event or the raw bytes, the reason, the last error, the attempts.",
    &[opt(
        "path",
        Path,
        Default("dead-letters.ndjson"),
        "The file. It is created when it is missing; its directory is not.",
    )],
);

static SHUTDOWN: Group = group(
    "shutdown",
    "The first Ctrl-C drains, the second stops at once.",
    &[opt(
        "deadline",
        Duration { min_ms: 0, max_ms: DAY_MS },
        Default("30s"),
        "How long draining may take; what is left then is refused, so that its source delivers it again.",
    )],
);

static ADMIN: Group = group(
    "the admin listener",
    "JSON over HTTP, on threads of its own: it answers also while every worker is busy or stuck. A web page of another \
     origin can neither read it nor change anything. docs/admin.md says what it can be asked.",
    &[
        opt(
            "listen",
            Text,
            Default("127.0.0.1:7070"),
            "An IP address (or `localhost`) and a port. Port 0 takes a free one, and the log says which. An address that other \
             machines can reach needs a `token`.",
        ),
        opt(
            "token",
            Text,
            Optional,
            "What every request but those for health has to show: `authorization: Bearer TOKEN`. Take it from a file or the \
             environment: `file:/run/secrets/greenroom-admin`, `${ADMIN_TOKEN}`.",
        ),
    ],
);

static OUTAGE: Group = group(
    "outage",
    "In an outage attempts are not counted and nothing is dead-lettered: intake pauses and one event probes at a time.",
    &[
        opt(
            "failures",
            Count { min: 2, max: 1_000_000 },
            Default("20"),
            "So many failed attempts in a row, over at least two events, are an outage.",
        ),
        opt(
            "window",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("10s"),
            "So long with failures only, of at least two events, is an outage.",
        ),
        opt(
            "limit",
            Duration { min_ms: 1, max_ms: DAY_MS },
            Default("5m"),
            "Once all inputs have ended, a run waits for a handler in outage so long, from that moment on. Then it gives up: the \
             rest is refused, exit code 3.",
        ),
    ],
);
