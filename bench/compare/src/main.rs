//! Greenroom beside other systems. Builds the programs of the folders beside this one, as far as
//! their tools are installed, keeps them running, and asks them in turn for repetitions of each
//! row, as `bench/PROTOCOL.md` says. Prints a table for each row; exits with 1 when a build failed,
//! a program broke, or a repetition came to no figure.
//!
//! `cargo run --profile measure --manifest-path bench/Cargo.toml -p compare -- --help`

use std::{fs, process::ExitCode, time::Duration};

use measure::{machine, ping_pong};
use serde_json::json;

mod building;
mod contestant;
mod field;
mod limits;
mod options;
mod plots;
mod protocol;
mod raw;
mod rounds;
mod rows;
mod table;

use self::{
    building::Built,
    field::{Entrant, Field, OWN},
    options::Options,
    protocol::System,
    rounds::Measured,
    rows::Row,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A program that says nothing for this long is killed.
const DEADLINE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ran = options::parse(&args).and_then(|options| match options {
        Some(options) => run(&options),
        None => {
            print!("{}", options::USAGE);
            Ok(())
        }
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    if let Some(folder) = &options.plots {
        fs::create_dir_all(folder)?;
    }
    let Built { launches, left_out, mut failed } = building::build()?;
    let (mut field, broken) = Field::start(launches, DEADLINE);
    failed.extend(broken);
    left_out.iter().for_each(|line| eprintln!("left out: {line}"));
    failed.iter().for_each(|line| eprintln!("FAILED: {line}"));
    field.unknown().iter().for_each(|line| eprintln!("ignored: {line}, which is no row here"));
    if options.list {
        field.entrants.iter().for_each(|entrant| println!("{}", listed(&entrant.system)));
    } else {
        compare(options, &mut field, &left_out, &mut failed)?;
    }
    match failed.len() {
        0 => Ok(()),
        count => Err(format!("{count} failed:\n  {}", failed.join("\n  ")).into()),
    }
}

/// Name, version, language and rows, and what it is.
fn listed(system: &System) -> String {
    let System { name, version, language, what, rows } = system;
    format!("{name:<34} {version:<12} {language:<8} {}\n    {what}", rows.join(" "))
}

/// Every row is run, also after one with failures.
fn compare(
    options: &Options,
    field: &mut Field,
    left_out: &[String],
    failed: &mut Vec<String>,
) -> Result<(), Failure> {
    let own = field.own().ok_or("greenroom itself does not run, so there is nothing to compare")?;
    let others = chosen(options, &field.entrants)?;
    let setting = setting(options, field);
    setting.iter().for_each(|(name, value)| println!("{name:<11} {value}"));
    let seconds = at_most(options, field, &others);
    eprintln!("some {:.0} minutes at most", (seconds / 60.0).ceil());

    let systems: Vec<System> =
        field.entrants.iter().map(|entrant| entrant.system.clone()).collect();
    let systems: Vec<_> = systems.iter().collect();
    let mut all = Vec::new();
    for row in options.rows.iter().copied() {
        let beside = beside(row, field, &others);
        let measured = rounds::run(row, own, &beside, options.amount, field);
        println!("\n{}", table::table(&measured, &systems));
        if let Some(folder) = &options.plots {
            plots::plot(&measured, &systems, &caption(&setting), folder)?;
        }
        match table::failures(&measured) {
            0 => {}
            count => failed.push(format!("{}: {count} repetitions without a figure", row.name)),
        }
        all.push(measured);
    }
    let tables =
        ["A4", "A256"].into_iter().filter_map(|workers| table::with_work(&all, workers, &systems));
    tables.for_each(|table| println!("{table}"));
    write(options, &setting, &all, &systems, left_out, failed)
}

/// Systems that were asked for, without greenroom itself.
fn chosen(options: &Options, entrants: &[Entrant]) -> Result<Vec<usize>, Failure> {
    let name = |who: usize| entrants[who].system.name.to_lowercase();
    let is_known =
        |part: &&String| (0..entrants.len()).any(|who| name(who).contains(part.as_str()));
    if let Some(part) = options.systems.iter().find(|part| !is_known(part)) {
        let all: Vec<_> = entrants.iter().map(|entrant| entrant.system.name.as_str()).collect();
        return Err(format!("no system {part}; there are {}", all.join(", ")).into());
    }
    let is_chosen = |who: &usize| {
        let name = name(*who);
        let is_asked = options.systems.iter().any(|part| name.contains(part.as_str()));
        name != OWN && (options.systems.is_empty() || is_asked)
    };
    Ok((0..entrants.len()).filter(is_chosen).collect())
}

fn beside(row: &Row, field: &Field, others: &[usize]) -> Vec<usize> {
    field.offering(row).into_iter().filter(|who| others.contains(who)).collect()
}

/// How long it takes where every repetition takes as long as it may.
fn at_most(options: &Options, field: &Field, others: &[usize]) -> f64 {
    let of_row = |row: &&Row| {
        let pairs = beside(row, field, others).len().max(1) * options.amount.rounds;
        2.0 * pairs as f64 * row.seconds()
    };
    options.rows.iter().map(of_row).sum()
}

/// Machine, versions and settings, as lines of a name and a value.
fn setting(options: &Options, field: &Field) -> Vec<(&'static str, String)> {
    let built = match cfg!(debug_assertions) {
        true => "this program with debug assertions; those that are measured optimised",
        false => "optimised",
    };
    let runtimes = field.runtimes.iter().map(|(name, runtime)| format!("{name}: {runtime}"));
    vec![
        ("machine", machine()),
        ("load", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()),
        ("cache line", format!("{:.0} ns round trip now (near: below 250)", ping_pong())),
        ("built", built.to_owned()),
        ("runtimes", runtimes.collect::<Vec<_>>().join("; ")),
        (
            "run",
            format!(
                "{} rounds after a warm-up; in each, greenroom and then the other system; at most {} messages \
                 and 1.5 s a repetition; 2 producers, two threads where a system lets one choose",
                options.amount.rounds, options.amount.messages
            ),
        ),
    ]
}

/// What stands below a plot.
fn caption(setting: &[(&'static str, String)]) -> Vec<String> {
    let told = ["machine", "runtimes", "run"];
    let lines = setting.iter().filter(|(name, _)| told.contains(name));
    lines.map(|(name, value)| format!("{name}: {value}")).collect()
}

fn write(
    options: &Options,
    setting: &[(&str, String)],
    all: &[Measured],
    systems: &[&System],
    left_out: &[String],
    failed: &[String],
) -> Result<(), Failure> {
    let Some(path) = &options.json else { return Ok(()) };
    let rows: Vec<_> = all.iter().map(|measured| raw::row(measured, systems)).collect();
    let systems: Vec<_> = systems.iter().map(|of| raw::system(of)).collect();
    let json = json!({
        "setting": raw::texts(setting),
        "systems": systems,
        "left_out": left_out,
        "rows": rows,
        "failed": failed,
    });
    Ok(fs::write(path, format!("{json:#}\n"))?)
}
