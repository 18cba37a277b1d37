//! `greenroom route FILE EVENT`: the route of a sample event through a configuration (C20).
//!
//! The router's own table chooses the handlers, the engine's conditions the outputs, and the order
//! of events their keys. Nothing is opened, run or written: files that the configuration names need
//! not exist.

mod plan;
mod sample;
mod text;
mod way;

use std::process::ExitCode;

use greenroom_bus::source::http::HttpInput;

use self::{
    plan::Plan,
    sample::{Sample, SampleRequest},
};
use super::check;
pub use crate::cli::Header;
use crate::{
    cli::RouteArgs,
    config::{Config, InputConfig, Kinds},
    exit::{self, Exit},
};

/// The input of the sample.
fn input<'c>(config: &'c Config, named: Option<&str>) -> Result<Option<&'c InputConfig>, String> {
    match (named, config.inputs.as_slice()) {
        (None, [only]) => Ok(Some(only)),
        (None, _) => Ok(None),
        (Some(name), inputs) => {
            let input = inputs.iter().find(|input| input.name == name);
            input.map(Some).ok_or_else(|| format!("the configuration has no input `{name}`"))
        }
    }
}

/// The form of the sample.
fn sample<'s>(config: &'s Config, arguments: &'s RouteArgs) -> Result<Sample<'s>, String> {
    let input = input(config, arguments.input.as_deref())?;
    let RouteArgs { path, headers, .. } = arguments;
    let is_request = path.is_some() || !headers.is_empty();
    let records = input.and_then(|input| input.records.as_ref());
    let kind = input.map(|input| &input.kind);
    if let Some(input) = kind.and_then(|kind| kind.downcast_ref::<HttpInput>())
        && (is_request || records.is_some())
    {
        let path = path.as_deref();
        return Ok(Sample::Request(SampleRequest { input, records, path, headers }));
    }
    match (kind, records) {
        (None, _) if is_request => Err("`--header` and `--path` belong to a request: name its \
            `http` input with `--input`"
            .to_owned()),
        (Some(other), _) if is_request => Err(format!(
            "`--header` and `--path` belong to a request to an `http` input, but the sample is for \
             a `{}` input",
            other.key()
        )),
        (_, Some(records)) => Ok(Sample::Lines(records)),
        (_, None) => Ok(Sample::Events),
    }
}

/// Prints the route of each sample event.
pub fn route(arguments: &RouteArgs) -> ExitCode {
    let config = match check::load_as_written(&arguments.source) {
        Ok(config) => config,
        Err(exit) => return exit.into(),
    };
    let sample = match sample(&config, arguments) {
        Ok(sample) => sample,
        Err(why) => return Exit::BadConfiguration.because(why),
    };
    let events = match sample::read(&arguments.event, &sample) {
        Ok(events) => events,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let plan = match Plan::new(&config) {
        Ok(plan) => plan,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let ways: Vec<_> = events.iter().map(|event| plan.way(event)).collect();
    let lines = |way| match arguments.json {
        true => serde_json::to_string(way).map(|json| json + "\n").unwrap_or_default(),
        false => text::render(way),
    };
    let between = if arguments.json { "" } else { "\n" };
    exit::answer(&ways.iter().map(lines).collect::<Vec<_>>().join(between))
}
