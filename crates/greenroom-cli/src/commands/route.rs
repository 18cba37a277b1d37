//! `greenroom route FILE EVENT`: the way of a sample event through a configuration (C20).
//!
//! The handlers are chosen by the router's own table, outputs by what the engine asks, keys by what
//! orders events. Nothing is opened, run or written: files that the configuration names need not be
//! there.

mod expect;
mod plan;
mod sample;
mod text;
mod way;

use std::process::ExitCode;

pub use self::expect::Expectation;
use self::plan::Plan;
use super::check;
use crate::{
    cli::RouteArgs,
    config::{Config, RecordsConfig},
    exit::{self, Exit},
};

/// The rule of the input that the sample is of.
fn records<'c>(
    config: &'c Config,
    named: Option<&str>,
) -> Result<Option<&'c RecordsConfig>, String> {
    let input = match (named, config.inputs.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), inputs) => {
            let input = inputs.iter().find(|input| input.name == name);
            Some(input.ok_or_else(|| format!("the configuration has no input `{name}`"))?)
        }
    };
    Ok(input.and_then(|input| input.records.as_ref()))
}

/// Prints the way of each sample event, and says whether it is the expected one.
pub fn route(arguments: &RouteArgs) -> ExitCode {
    let config = match check::load_as_written(&arguments.source) {
        Ok(config) => config,
        Err(exit) => return exit.into(),
    };
    let records = match records(&config, arguments.input.as_deref()) {
        Ok(records) => records,
        Err(why) => return Exit::BadConfiguration.because(why),
    };
    let events = match sample::read(&arguments.event, records) {
        Ok(events) => events,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let plan = match Plan::of(&config) {
        Ok(plan) => plan,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let ways: Vec<_> = events.iter().map(|event| plan.way(event)).collect();
    let lines = |way| match arguments.json {
        true => serde_json::to_string(way).map(|json| json + "\n").unwrap_or_default(),
        false => text::of(way),
    };
    let between = if arguments.json { "" } else { "\n" };
    let printed = exit::answer(&ways.iter().map(lines).collect::<Vec<_>>().join(between));
    match expect::unmet(&arguments.expect, &ways) {
        Some(why) => Exit::CouldNotRun.because(why),
        None => printed,
    }
}
