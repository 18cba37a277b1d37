//! One case: a run of its own, on virtual time.

use std::{collections::HashMap, mem, sync::Arc, time::Duration};

use greenroom_bus::{engine::RunReport, stand_in::StandIn};

use super::{
    given::{Given, given},
    options::{CaseOptions, CaseOutcome, StandInOptions, TestFile},
};
use crate::{
    config::{Autotune, Config, LayerConfig},
    run::{
        assemble,
        stand_ins::{SeenAttempt, StandIns},
        targets::Targets,
    },
};

/// No case takes longer, in virtual time.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// The result of a case.
pub(super) struct CaseResult {
    pub(super) outcome: CaseOutcome,
    pub(super) attempts: Vec<SeenAttempt>,
    /// By the name of the output, as JSON.
    pub(super) stored: Vec<(String, Vec<serde_json::Value>)>,
    pub(super) letters: Vec<SeenLetter>,
    pub(super) reply: Option<u16>,
    /// The errors in the report of the run.
    pub(super) errors: Vec<String>,
}

/// A dead letter.
pub(super) struct SeenLetter {
    pub(super) reason: &'static str,
    pub(super) error: String,
    pub(super) handler: Option<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attempts: u32,
}

/// Runs a case.
///
/// # Errors
/// It cannot be run.
pub(super) fn run(
    config: &Config,
    tests: &TestFile,
    case: &CaseOptions,
) -> Result<CaseResult, String> {
    let Given { input, items, reply } = given(config, case)?;
    let config = without_targets(config, &input.name);
    let stand_ins = Arc::new(StandIns {
        handlers: stand_ins(
            config.handlers.iter().map(|handler| &handler.name),
            &tests.handlers,
            &case.handlers,
        ),
        outputs: stand_ins(
            config.outputs.iter().map(|output| &output.name),
            &tests.outputs,
            &case.outputs,
        ),
        items: items.into(),
        ..StandIns::default()
    });
    let report = on_virtual_time(&config, &stand_ins)?;
    let stored = config.outputs.iter().map(|output| {
        let events = stand_ins.outputs.get(&output.name).map(StandIn::stored);
        (output.name.clone(), events.iter().flatten().map(as_json).collect())
    });
    let letters = mem::take(&mut *stand_ins.letters.0.lock());
    let letters = letters.into_iter().map(|letter| SeenLetter {
        reason: letter.reason.as_str(),
        error: letter.error,
        handler: letter.handler.map(|name| name.to_string()),
        outputs: letter.rejected.iter().map(|rejection| rejection.output.to_string()).collect(),
        attempts: letter.attempts,
    });
    let is_answered = reply.is_none_or(|status| status < 300);
    Ok(CaseResult {
        outcome: if is_answered { outcome(&report) } else { CaseOutcome::Refused },
        stored: stored.collect(),
        letters: letters.collect(),
        attempts: stand_ins.attempts.lock().clone(),
        reply,
        errors: report.errors,
    })
}

fn on_virtual_time(config: &Config, stand_ins: &Arc<StandIns>) -> Result<RunReport, String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    runtime.block_on(async {
        let targets = Targets::standing_in(stand_ins.clone());
        let (engine, ..) = assemble::engine(config, &targets, None).await?;
        let ended = tokio::time::timeout(LONGEST, engine.run()).await;
        ended.map_err(|_| "it had not ended after 30 days of virtual time".to_owned())
    })
}

/// The one input of the case, no threads of their own, and nothing in files.
fn without_targets(config: &Config, input: &str) -> Config {
    let mut config = config.clone();
    config.inputs.retain(|known| known.name == input);
    for pool in &mut config.pools {
        pool.dedicated_threads = None;
        pool.autotune = Autotune::Off;
    }
    for layer in config.handlers.iter_mut().flat_map(|handler| &mut handler.layers) {
        if let LayerConfig::Deduplication(seen) = layer {
            seen.store = None;
        }
    }
    config
}

/// A stand-in for each of these names: the case's own, else that of the file.
fn stand_ins<'n>(
    names: impl Iterator<Item = &'n String>,
    of_file: &[StandInOptions],
    of_case: &[StandInOptions],
) -> HashMap<String, StandIn> {
    names
        .map(|name| {
            let mut given = of_case.iter().chain(of_file);
            let given = given.find(|stand_in| stand_in.name == *name);
            (name.clone(), given.map(StandInOptions::stand_in).unwrap_or_default())
        })
        .collect()
}

fn outcome(report: &RunReport) -> CaseOutcome {
    match report {
        RunReport { parked: 1.., .. } => CaseOutcome::Parked,
        RunReport { refused: 1.., .. } | RunReport { given_back: 1.., .. } => CaseOutcome::Refused,
        RunReport { dead_lettered: 1.., .. } => CaseOutcome::DeadLetter,
        RunReport { ignored: 1.., handled: 0, .. } => CaseOutcome::Ignored,
        _ => CaseOutcome::Handled,
    }
}

fn as_json(event: &greenroom_bus::event::Event) -> serde_json::Value {
    let mut json = Vec::new();
    event.write_json(&mut json);
    serde_json::from_slice(&json).unwrap_or_default()
}
