//! The command line.

mod header;
mod operate;
mod values;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::version;

pub use crate::{logging::LogFormat, report::ReportFormat};
pub use header::Header;
pub use operate::{
    HandlerCommand, KeyCommand, KeyDecision, NamedAt, OutputCommand, PoolCommand, ShareAt,
    ShareCommand, ShareSort,
};
pub use values::Seconds;

/// The default address of an `http` input.
const SEND_TO: &str = "http://127.0.0.1:8080/events";

/// Runs events through pools of workers, in order per key.
#[derive(Debug, Parser)]
#[command(name = "greenroom", max_term_width = 100)]
#[command(version = version::SHORT, long_version = version::LONG)]
pub struct Cli {
    /// The format of logs, on standard error [default: human]
    #[arg(long, value_name = "FORMAT", global = true)]
    pub log: Option<LogFormat>,
    /// The least severe log lines shown: off, error, warn, info, debug, trace, or
    /// `target=level,...` [default: RUST_LOG, otherwise info]
    #[arg(long, value_name = "LEVEL", global = true)]
    pub log_level: Option<String>,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a configuration until its inputs end or a signal arrives
    ///
    /// The first Ctrl-C drains, the second stops at once. Exit code 0: everything was handled,
    /// ignored or dead-lettered, or will be delivered again by its input; 1: it could not run; 2:
    /// bad configuration; 3: events were refused or left unsettled.
    Run(RunArgs),
    /// Check a configuration and print every problem with its place
    Check(Source),
    /// Show the state of a key in a running greenroom, and why it waits
    ///
    /// Asks the admin listener (`admin` in the configuration); a token comes
    /// from GREENROOM_ADMIN_TOKEN.
    Why(WhyArgs),
    /// Show recommended changes to a running greenroom: figures, reasons, and the lines of the file
    ///
    /// Asks the admin listener (`admin` in the configuration); a token comes from
    /// GREENROOM_ADMIN_TOKEN. docs/advisor.md describes the rules. Exit code 0 even if changes are
    /// recommended; 1: no answer.
    Advise(AdviseArgs),
    /// Show the health of a running greenroom: problems and their consequences
    ///
    /// Asks the admin listener (`admin` in the configuration); a token comes from
    /// GREENROOM_ADMIN_TOKEN. Exit code 0: healthy; 1: no answer; 3: there is a problem.
    Status(StatusArgs),
    /// Decide on a parked key of a running greenroom
    #[command(subcommand)]
    Key(KeyCommand),
    /// Pause, resume or resize a pool of a running greenroom
    #[command(subcommand)]
    Pool(PoolCommand),
    /// List, limit, hold, pause or resume the shares of a pool of a running greenroom
    #[command(subcommand)]
    Share(ShareCommand),
    /// Pause or resume a handler of a running greenroom
    #[command(subcommand)]
    Handler(HandlerCommand),
    /// Resume a paused output of a running greenroom
    #[command(subcommand)]
    Output(OutputCommand),
    /// Make a running greenroom read its configuration again, and print the changes
    ///
    /// Exit code 1: no answer, or the configuration has mistakes; then nothing has changed.
    Reload {
        /// The address of the running greenroom's admin listener
        #[arg(default_value = crate::admin_client::ADDRESS)]
        address: String,
    },
    /// Watch a running greenroom on this terminal, once a second: slow, stuck or failing parts
    ///
    /// Asks the admin listener (`admin` in the configuration); a token comes from
    /// GREENROOM_ADMIN_TOKEN. Ctrl-C ends it. If standard output is no terminal, it prints one
    /// snapshot and ends.
    Top(TopArgs),
    /// List, show, edit, replay, drop, export or redrive dead letters
    ///
    /// The letters of a running greenroom, by its admin listener (a token comes from
    /// GREENROOM_ADMIN_TOKEN), or of a store that no process has open (`--store`, `--config`).
    /// Letters in Kafka or NATS are redriven.
    DeadLetters(Box<DeadLettersArgs>),
    /// Show the route of sample events (handler, pool, key, outputs), and why not another
    ///
    /// Nothing is run, opened or written.
    Route(RouteArgs),
    /// Test a configuration: run the cases of a file against stand-ins
    ///
    /// Each case has an event and its expected consequences: handler, pool, key, outputs, dead
    /// letters. Handlers and outputs are replaced by stand-ins, whose answers a case may choose:
    /// nothing is connected to, started or written, and waits take no time. docs/test-files.md
    /// describes the file. Exit code 0: all cases pass; 1: one fails; 2: a file has mistakes.
    Test(TestArgs),
    /// Print the consequence of each HTTP status of a target
    ExplainStatus(ExplainStatusArgs),
    /// Post the events of a file to an `http` input, in batches
    ///
    /// A post without an answer, or with the answer 429 or 5xx, is sent again: the input does not
    /// store an event twice while it remembers it. Exit code 0: all events are stored; 1: they
    /// could not be sent; 3: a line is not an event, or was refused.
    Send(SendArgs),
    /// Print the JSON Schema of the configuration, for editors
    Schema {
        /// Print the reference page (Markdown) instead
        #[arg(long)]
        reference: bool,
        /// Print the schema of test files (`greenroom test`) instead
        #[arg(long, conflicts_with = "reference")]
        tests: bool,
    },
    /// Write a commented starting configuration, sample data and a worker script
    Init(InitArgs),
    /// Demonstrate order per key: skewed keys, a flaky target, and every number checked
    ///
    /// Needs no configuration or installation. Exit code 0: nothing was lost, out of order or
    /// repeated without a reason; 3: otherwise, which is a defect.
    Demo(DemoArgs),
    /// Measure this machine: a pool of the library compared with the same work without a pool
    ///
    /// Exit code 1: it could not run, or a message was lost. Figures are printed, not judged.
    Bench(BenchArgs),
    /// Maintain a durable store: check, copy, compact or export it
    ///
    /// PATH is its directory. Exit code 1: the command failed, or the store is damaged.
    Store(StoreArgs),
    /// Print a script that completes commands and options in a shell
    ///
    /// For bash, put it into ~/.local/share/bash-completion/completions/greenroom; for zsh, into a
    /// file `_greenroom` in a directory of $fpath; for fish, into
    /// ~/.config/fish/completions/greenroom.fish.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of greenroom or of one of its commands
    ///
    /// `greenroom man | man -l -` shows it; `--dir` writes all pages, for a package.
    Man(ManArgs),
}

/// A configuration file with overrides.
#[derive(Debug, Clone, Args)]
pub struct Source {
    /// The configuration file: YAML, or TOML when it ends in `.toml`; `-` is standard input
    pub file: PathBuf,
    /// Set one value, for example `--set pools.default.workers=8`
    #[arg(long = "set", value_name = "a.b=VALUE")]
    pub settings: Vec<String>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration to run.
    #[command(flatten)]
    pub source: Source,
    /// The format of the final report: on standard output, or on standard error if an output writes
    /// events to standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub report: ReportFormat,
    /// Read the inputs without handling or settling anything, and print statistics of their events:
    /// rate, sizes, the hottest keys, and how many workers would be busy
    ///
    /// It ends with the inputs, at Ctrl-C, or after 10 s.
    #[arg(long, conflicts_with = "report")]
    pub dry_run: bool,
}

/// Arguments of `route`.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The configuration that decides the route.
    #[command(flatten)]
    pub source: Source,
    /// The sample: a file with one or more CloudEvents as JSON, lines for `records` to turn into
    /// events, or the body of a request; `-` is standard input
    pub event: PathBuf,
    /// The input of the sample: if it has `records`, each line of the sample is an event, or the
    /// whole sample is one request body. Can be omitted if there is only one input
    #[arg(long, value_name = "NAME")]
    pub input: Option<String>,
    /// A header of the request whose body is the sample, for an `http` input: 'Name: value'
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<Header>,
    /// The path that the request was posted to, without a query. By default, the path of the input
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Print a JSON object for each event, one per line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The test file: YAML, or TOML when it ends in `.toml`. It names its configuration
    pub file: PathBuf,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The key: a value of `order_by`
    pub key: String,
    /// The address of the running greenroom's admin listener
    #[arg(default_value = crate::admin_client::ADDRESS)]
    pub address: String,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The address of the running greenroom's admin listener
    #[arg(default_value = crate::admin_client::ADDRESS)]
    pub address: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The address of the running greenroom's admin listener
    #[arg(default_value = crate::admin_client::ADDRESS)]
    pub address: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The address of the running greenroom's admin listener
    #[arg(default_value = crate::admin_client::ADDRESS)]
    pub address: String,
    /// Print one snapshot, after one second, and end
    #[arg(long)]
    pub once: bool,
}

/// Arguments of `dead-letters`.
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    /// The command.
    #[command(subcommand)]
    pub what: DeadLettersCommand,
}

/// The commands for dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List letters, oldest first, or count them by a property
    List(ListArgs),
    /// Print one letter, whole
    Show(ShowArgs),
    /// Replace the event of a letter; the original is kept
    ///
    /// Opens $VISUAL or $EDITOR unless --set or --file gives the new event.
    Edit(EditArgs),
    /// Handle letters again, at the end of their keys' lines
    Replay(ReplayArgs),
    /// Drop letters for good
    Drop(DropArgs),
    /// Print letters as JSON, one per line
    Export(ExportArgs),
    /// Send letters that went to Kafka or NATS back to the topic or stream that they came from
    ///
    /// Each record has its original key and headers. A running greenroom handles it again, at the
    /// end of its key's line. A letter is sent only once: on Kafka, a consumer group remembers it;
    /// on NATS, the letter is removed. Letters that are not selected, or came from elsewhere, stay.
    /// Exit code 3: some could not be sent, and stay.
    Redrive(RedriveArgs),
}

/// The place of dead letters.
#[derive(Debug, Clone, Args)]
pub struct LettersPlace {
    /// The address of the running greenroom's admin listener [default: 127.0.0.1:7070]
    pub address: Option<String>,
    /// The directory of the store, instead of an address
    #[arg(long, value_name = "DIR", conflicts_with_all = ["address", "config"])]
    pub store: Option<PathBuf>,
    /// The configuration that names the store, instead of an address
    #[arg(long, value_name = "FILE", conflicts_with = "address")]
    pub config: Option<PathBuf>,
}

/// Selects letters that meet all of these conditions.
#[derive(Debug, Clone, Default, Args)]
pub struct LettersFilter {
    /// These letters, by number
    #[arg(long = "id", value_name = "NUMBER", value_delimiter = ',')]
    pub ids: Vec<u64>,
    /// Of this pool
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Of this handler
    #[arg(long, value_name = "NAME")]
    pub handler: Option<String>,
    /// Of this input
    #[arg(long, value_name = "NAME")]
    pub input: Option<String>,
    /// Of this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Of this share
    #[arg(long, value_name = "SHARE")]
    pub share: Option<String>,
    /// Of the event with this id
    #[arg(long, value_name = "ID")]
    pub event: Option<String>,
    /// For this reason, such as `retries_exhausted`
    #[arg(long, value_name = "REASON")]
    pub reason: Option<String>,
    /// Of this group of errors, named as in `list --by group`
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Failed since this time: `2026-01-31T12:00:00Z`, or this long ago, such as `2h`
    #[arg(long, value_name = "TIME", value_parser = values::since)]
    pub since: Option<String>,
}

/// Arguments of `dead-letters list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Their place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// The selection.
    #[command(flatten)]
    pub filter: LettersFilter,
    /// Count them by `group` of errors, `reason` or `handler`
    #[arg(long, value_name = "WHAT")]
    pub by: Option<LettersBy>,
    /// Those after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub after: u64,
    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub limit: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The property that letters are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LettersBy {
    /// The group of their errors
    Group,
    /// Their reason
    Reason,
    /// Their handler
    Handler,
}

/// Arguments of `dead-letters show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The number of the letter
    pub number: u64,
    /// Its place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// Show masked values
    #[arg(long, conflicts_with = "address")]
    pub unmasked: bool,
    /// Print it on one line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dead-letters edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// The number of the letter
    pub number: u64,
    /// Its place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// Set one place in the event, for example `--set /data/amount=5`; the value is JSON, or else a
    /// text
    #[arg(long = "set", value_name = "/POINTER=VALUE", conflicts_with = "file")]
    pub settings: Vec<String>,
    /// A file with the event as JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `dead-letters replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Their place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// The selection.
    #[command(flatten)]
    pub filter: LettersFilter,
    /// All of them
    #[arg(long)]
    pub all: bool,
    /// At most this many per second, for example `20/s`; by default, as fast as they are handled
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub rate: Option<f64>,
    /// List the requested replays and their progress
    #[arg(long, conflicts_with_all = ["all", "rate", "stop", "resume", "cancel"])]
    pub status: bool,
    /// Stop the replay of this number; its letters stay marked
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "rate", "resume", "cancel"])]
    pub stop: Option<u64>,
    /// Resume the replay with this number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "rate", "cancel"])]
    pub resume: Option<u64>,
    /// Release the letters of this replay that still wait
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "rate"])]
    pub cancel: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dead-letters drop`.
#[derive(Debug, Args)]
pub struct DropArgs {
    /// Their place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// The selection.
    #[command(flatten)]
    pub filter: LettersFilter,
    /// All of them
    #[arg(long)]
    pub all: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dead-letters export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Their place.
    #[command(flatten)]
    pub place: LettersPlace,
    /// The selection.
    #[command(flatten)]
    pub filter: LettersFilter,
    /// Show masked values
    #[arg(long, conflicts_with = "address")]
    pub unmasked: bool,
}

/// Arguments of `dead-letters redrive`.
#[derive(Debug, Args)]
pub struct RedriveArgs {
    /// The configuration whose `dead_letters` name a topic or a subject.
    #[command(flatten)]
    pub source: Source,
    /// Only letters for this reason, such as `retries_exhausted`
    #[arg(long, value_name = "REASON")]
    pub reason: Option<String>,
    /// Only letters of this handler
    #[arg(long, value_name = "NAME")]
    pub handler: Option<String>,
    /// Only letters of this input
    #[arg(long, value_name = "NAME")]
    pub input: Option<String>,
    /// At most this many
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// For Kafka: the consumer group that remembers the sent letters [default: greenroom-redrive]
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Count the letters that would be sent, but send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain-status`.
#[derive(Debug, Args)]
pub struct ExplainStatusArgs {
    /// A configuration file: its `http` handlers and outputs are explained, with the rows that they
    /// replace
    pub file: Option<PathBuf>,
    /// Override one of its values
    #[arg(long = "set", value_name = "a.b=VALUE", requires = "file")]
    pub settings: Vec<String>,
}

/// Arguments of `send`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct SendArgs {
    /// The address of the input: a URL, or an address and a port for `http://ADDRESS/events`
    #[arg(default_value = SEND_TO)]
    pub address: String,
    /// One CloudEvent (JSON) per line; plain, gzip or zstd. `-` is standard input; a directory or a
    /// pattern means several files
    pub file: PathBuf,
    /// The token to send; GREENROOM_SEND_TOKEN is better, as others cannot see it
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// A file (PEM) with the authorities to trust for an https URL, instead of those of the system
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The most events in a request
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub batch: u32,
    /// The approximate size of a request in bytes; a larger event is sent alone
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = values::size)]
    pub batch_bytes: u64,
    /// How long to retry while nothing can be stored
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = values::duration)]
    pub retry_for: Duration,
    /// Continue after a line that is not an event or is refused, and count it
    #[arg(long)]
    pub skip_bad: bool,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The kind of configuration: `orders` (a file), `http` (posted events), `kafka` (a topic),
    /// `nats` or `redis` (a stream), or another kind of input, such as `generator`
    #[arg(default_value = "orders")]
    pub template: String,
    /// The directory to write into
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Make one key slow, and also send the same messages through channels chosen by hash
    #[arg(long)]
    pub slow_key: bool,
    /// Serve the dashboard of a simulated run until Ctrl-C: open the printed address
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7070", conflicts_with_all = ["slow_key", "seconds", "seed"])]
    pub dashboard: Option<String>,
    /// Serve a page with sliders that compares lanes and hashing live, until Ctrl-C
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7070", conflicts_with_all = ["dashboard", "slow_key", "seconds", "seed"])]
    pub playground: Option<String>,
    /// How long messages keep arriving
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = values::seconds)]
    pub seconds: Seconds,
    /// The seed of the random arrivals; the same seed makes the same arrivals
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Workers of the pool
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub workers: u32,
    /// Keys; messages of one key are handled in order. 0: no order
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub keys: u32,
    /// How long the handler of a message computes, for example `2us`; nothing by default
    #[arg(long, value_name = "TIME", default_value = "0us", allow_negative_numbers = true, value_parser = values::work)]
    pub work: Duration,
    /// Latency is measured at this many messages per second: `20000` or `20000/s`
    #[arg(long, value_name = "RATE", default_value = "20000", allow_negative_numbers = true, value_parser = values::rate)]
    pub rate: f64,
    /// Measure every preset of a pool instead, or the named ones
    #[arg(long, value_name = "NAME,..", num_args = 0.., require_equals = true, value_delimiter = ',', conflicts_with = "workers")]
    pub presets: Option<Vec<String>>,
    /// The duration of each measurement
    #[arg(long, value_name = "SECONDS", default_value = "3", allow_negative_numbers = true, value_parser = values::seconds)]
    pub seconds: Seconds,
    /// Print only the row of one preset: each preset is measured in its own process
    #[arg(long, hide = true)]
    pub row: bool,
}

/// Arguments of `store`.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The command.
    #[command(subcommand)]
    pub action: StoreAction,
}

/// The commands for a store.
#[derive(Debug, Subcommand)]
pub enum StoreAction {
    /// Read a whole store and verify every checksum and sequence number; works while it is in use
    ///
    /// Shows its contents, its time range, and the positions of its consumers. Changes nothing.
    Check {
        /// The directory of the store
        path: PathBuf,
    },
    /// Copy a store to a new directory; works while it is in use
    Backup {
        /// The directory of the store
        path: PathBuf,
        /// The directory of the copy: new or empty
        to: PathBuf,
    },
    /// Remove data that no consumer needs any more; not while a greenroom uses it
    Compact {
        /// The directory of the store
        path: PathBuf,
        /// Keep data younger than this, for example `12h`; nothing by default
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::age)]
        keep: Duration,
        /// Forget an unused consumer, so that data that only it needs can be removed
        #[arg(long, value_name = "CONSUMER")]
        forget: Vec<String>,
    },
    /// Print the events of a store as CloudEvents, one per line; works for a damaged store
    ///
    /// Damage is reported on standard error, with its place; the exit code is then 1.
    Export {
        /// The directory of the store
        path: PathBuf,
    },
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed; by default, the page of greenroom itself
    #[arg(conflicts_with = "dir")]
    pub command: Option<String>,
    /// Write the pages of greenroom and of all its commands into this directory instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// A shell to complete commands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}
