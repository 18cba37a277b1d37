//! `greenroom bench`: measures a pool of the library on this machine (C06): messages per second at
//! full speed, latency at a fixed rate, and memory.

mod machine;
mod measure;
mod work;

use std::process::{Command, ExitCode, Stdio};

use greenroom::event_pool::Preset;
use greenroom_config::{Word, plural};

use self::measure::{Load, Measured, measure};
use crate::{
    cli::BenchArgs,
    exit::{self, Exit},
    progress,
    report::{grouped, mebibytes, seconds},
};

/// Messages that may wait per worker, unless a preset sets another number.
const MAILBOX: usize = 1_000;

/// Measures, and prints the row of each pool as soon as it is ready.
pub fn bench(args: &BenchArgs) -> ExitCode {
    let chosen = match chosen(args.presets.as_deref()) {
        Ok(chosen) => chosen,
        Err(why) => return Exit::BadConfiguration.because(why),
    };
    match rows(&chosen, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn rows(presets: &[Preset], args: &BenchArgs) -> Result<(), String> {
    if let ([one], true) = (presets, args.row) {
        return row(one.word(), one.pool_size(), one.inbox_size(), args);
    }
    print(&heading(args))?;
    if presets.is_empty() {
        return row("a pool", args.workers as usize, MAILBOX, args);
    }
    presets.iter().try_for_each(|preset| in_a_process(preset.word(), args))
}

fn print(text: &str) -> Result<(), String> {
    let printed = exit::answer(text) == ExitCode::SUCCESS;
    if printed { Ok(()) } else { Err("the figures could not be printed".to_owned()) }
}

/// The presets of these names; all of them if no name is given.
fn chosen(names: Option<&[String]>) -> Result<Vec<Preset>, String> {
    let Some(names) = names else { return Ok(Vec::new()) };
    if names.is_empty() {
        return Ok(Preset::all().collect());
    }
    let known = |name: &String| {
        Preset::of(name).ok_or_else(|| {
            format!("there is no preset `{name}`; there are {}", Preset::WORDS.join(", "))
        })
    };
    names.iter().map(known).collect()
}

fn heading(args: &BenchArgs) -> String {
    let keys = match args.keys {
        0 => "no keys".to_owned(),
        keys => format!("{} (Zipf 1)", plural(keys as usize, "key")),
    };
    let processor = machine::processor().unwrap_or_else(|| "unknown processor".to_owned());
    let work = if args.work.is_zero() {
        "handlers that do nothing".to_owned()
    } else {
        format!("handlers of {:?}", args.work)
    };
    let debug =
        if cfg!(debug_assertions) { "; a debug build: compare nothing with it" } else { "" };
    format!(
        "greenroom {}, {} cores, {processor}{debug}\n{keys}, {work}; {} as fast as it goes, {} at {}/s\n\n{}",
        env!("CARGO_PKG_VERSION"),
        machine::cores(),
        seconds(args.seconds.0.as_secs_f64()),
        seconds(args.seconds.0.as_secs_f64()),
        grouped(args.rate.round() as u64),
        line("pool", ["workers x inbox", "messages/s", "p99", "memory"].map(str::to_owned)),
    )
}

fn line(name: &str, [size, per_s, p99, memory]: [String; 4]) -> String {
    format!("{name:<16}  {size:>15}  {per_s:>12}  {p99:>9}  {memory:>11}\n")
}

/// Measures a pool and prints its row.
fn row(name: &str, workers: usize, mailbox: usize, args: &BenchArgs) -> Result<(), String> {
    let shown = progress::words(format!("{name}: {}", plural(workers, "worker")));
    let measured = measure(&Load::new(workers, mailbox, args));
    drop(shown);
    let Measured { per_s, p99, memory } = measured?;
    let size = format!("{} x {}", grouped(workers as u64), grouped(mailbox as u64));
    let p99 = p99.map_or_else(|| "overrun".to_owned(), |p99| format!("{p99:.1?}"));
    let memory = memory.map_or_else(|| "-".to_owned(), mebibytes);
    print(&line(name, [size, grouped(per_s.round() as u64), p99, memory]))
}

/// Measures a row in its own process: an allocator keeps freed memory, so that a second pool in the
/// same process would appear too small.
fn in_a_process(name: &str, args: &BenchArgs) -> Result<(), String> {
    let mut child = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    child.args(["bench", "--row", &format!("--presets={name}")]);
    let settings = [
        ("--keys", args.keys.to_string()),
        ("--work", format!("{}ns", args.work.as_nanos())),
        ("--rate", args.rate.to_string()),
        ("--seconds", args.seconds.0.as_secs_f64().to_string()),
    ];
    child.args(settings.iter().flat_map(|(name, value)| [*name, value.as_str()]));
    let ended = child.stdin(Stdio::null()).status().map_err(|error| format!("{name}: {error}"))?;
    if ended.success() { Ok(()) } else { Err(format!("preset `{name}` could not be measured")) }
}
