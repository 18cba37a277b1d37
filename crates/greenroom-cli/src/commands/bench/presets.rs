//! Every preset of a pool, each in a process of its own: an allocator keeps what others have freed,
//! so that the memory of the second would be measured too small.

use std::process::{Command, Stdio};

use super::{
    load::Load,
    measure::BenchSide,
    rows::row,
    table::{BenchOutcome, Row},
};
use greenroom::event_pool::Preset;

use crate::{cli::BenchArgs, progress};

/// Messages per second for latencies, unless said otherwise.
const RATE: f64 = 20_000.0;

/// The presets of these names; all of them where there are none.
///
/// # Errors
/// A name that no preset has.
fn chosen(names: &[String]) -> Result<Vec<Preset>, String> {
    if names.is_empty() {
        return Ok(Preset::ALL.to_vec());
    }
    let known = |name: &String| {
        Preset::named(name).ok_or_else(|| {
            let all: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            format!("there is no preset `{name}`; there are {}", all.join(", "))
        })
    };
    names.iter().map(known).collect()
}

/// Whether all of these are presets.
pub(super) fn check(names: &[String]) -> Result<(), String> {
    chosen(names).map(drop)
}

/// The floor, and a row for each preset.
pub(super) fn rows(args: &BenchArgs, names: &[String]) -> Result<Vec<Row>, String> {
    let rate = args.rate.unwrap_or(RATE);
    let floor = row(&Load::new(args), BenchSide::Floor, Some(rate))?;
    let presets = chosen(names)?.into_iter().map(|preset| measured(preset, args, rate));
    [Ok(floor)].into_iter().chain(presets).collect()
}

fn measured(preset: Preset, args: &BenchArgs, rate: f64) -> Result<Row, String> {
    let name = preset.name();
    let mut child = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    child.args(["bench", "--pool-alone", "--json"]);
    let settings = [
        ("--workers", preset.pool_size().to_string()),
        ("--inbox", preset.inbox_size().to_string()),
        ("--keys", args.keys.to_string()),
        ("--zipf", args.zipf.to_string()),
        ("--work", format!("{}ns", args.work.as_nanos())),
        ("--rate", rate.to_string()),
        ("--seconds", args.seconds.0.as_secs_f64().to_string()),
        ("--seed", args.seed.to_string()),
    ];
    child.args(settings.iter().flat_map(|(name, value)| [*name, value.as_str()]));
    let output = watched(child, name)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("preset `{name}`: {}", why.trim().trim_start_matches("error: ")));
    }
    let outcome: BenchOutcome = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("preset `{name}`: {error}"))?;
    let row = outcome.rows.into_iter().next().ok_or_else(|| format!("preset `{name}`: no row"))?;
    Ok(row.named(name))
}

/// Runs a program to its end, and says so on a terminal.
fn watched(mut program: Command, name: &str) -> Result<std::process::Output, String> {
    program.stdin(Stdio::null());
    let shown = progress::words(format!("preset {name}"));
    let output = program.output().map_err(|error| format!("preset `{name}`: {error}"));
    drop(shown);
    output
}
