//! All sides in turn, and what their figures come to.

use std::process::ExitCode;

use measure::{Options, Watch, machine, max, median, min};

use crate::{
    AT_ONCE, Failure, USAGE,
    side::{Answers, Run, Side, measured},
};

const USUAL: Options = Options { events: 20_000, rounds: 5 };

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::of(args, USUAL).map_err(|wrong| format!("{wrong}\n{USAGE}"))?;
    let Options { events, rounds } = options;
    println!("greenroom {}, {}", env!("CARGO_PKG_VERSION"), machine());
    println!("{events} events of 1 KiB, {AT_ONCE} at once, {rounds} rounds");
    let mut is_whole = true;
    for answers in Answers::ALL {
        is_whole &= of_target(answers, &options)?;
    }
    if is_whole {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("error: events were lost");
    Ok(ExitCode::FAILURE)
}

/// Runs and prints all sides against one target. Whether each event was accepted.
fn of_target(answers: Answers, options: &Options) -> Result<bool, Failure> {
    let watch = Watch::start();
    let mut rounds: Vec<[Run; 3]> = Vec::new();
    for round in 1..=options.rounds {
        let mut runs = [None; 3];
        for (run, side) in runs.iter_mut().zip(Side::ALL) {
            *run = Some(measured(side, answers, options.events)?);
        }
        if let [Some(plain), Some(engine), Some(ordered)] = runs {
            rounds.push([plain, engine, ordered]);
        }
        eprintln!("target answers {}: round {round} of {}", answers.name(), options.rounds);
    }
    println!("\ntarget answers {} (others used {:.2} cores)", answers.name(), watch.cores());
    println!("{:<24} {:>10}   {:<18} {:>9}   ratio", "", "per second", "range", "cpu, µs");
    for (place, side) in Side::ALL.into_iter().enumerate() {
        let of = |figure: fn(Run) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| figure(round[place])).collect()
        };
        let (rates, each) = (of(Run::rate), of(Run::each));
        let ratios: Vec<f64> =
            rounds.iter().map(|round| round[place].rate() / round[0].rate()).collect();
        let range = format!("{:.0} to {:.0}", min(&rates), max(&rates));
        let aim = if side == Side::Engine { "   (at least 0.8, aim 0.9)" } else { "" };
        println!(
            "{:<24} {:>10.0}   {range:<18} {:>9.1}   {:.3}, {:.3} to {:.3}{aim}",
            side.name(),
            median(&rates),
            median(&each),
            median(&ratios),
            min(&ratios),
            max(&ratios),
        );
    }
    Ok(rounds.iter().flatten().all(|run| run.events == options.events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_known_by_its_name() {
        for answers in Answers::ALL {
            assert_eq!(Answers::named(answers.name()).unwrap(), answers);
        }
        assert!(Answers::named("never").is_err());
    }
}
