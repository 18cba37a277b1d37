//! Advice to an operator, derived from the state of the daemon (O13).
//!
//! ```text
//! engine, configuration, layers ──▶ Seen ──▶ rules ──▶ findings ──▶ chains, the worst first
//! ```
//!
//! A finding states the problem, the figures, the reason, the change to make, and the exact lines
//! of the configuration or the request that makes it. Each rule is a pure function of the observed
//! state, without a clock. The rules run once a second, for the history, and when a client asks;
//! advice on the sizes of pools comes from the advisor of each ([`greenroom::advisor`]).

mod busy_shares;
mod chains;
mod command;
mod events;
mod finding;
mod inputs;
mod lines;
mod paused_shares;
mod pools;
mod recent;
mod seen;
mod sizes;
mod targets;
#[cfg(test)]
mod tests;
mod words;

use serde_json::{Value, json};

pub(super) use self::{
    finding::{Finding, Severity},
    recent::Recent,
    seen::Seen,
};
use crate::config::Autotune;

/// A rule examines the observed state, and adds its findings.
type Rule = fn(&Seen, &mut Vec<Finding>);

/// In the order in which findings of one severity are reported. A cause comes before its
/// consequences.
const RULES: &[Rule] = &[
    pools::workers_given_up,
    inputs::not_connected,
    inputs::log_fails,
    targets::handlers,
    targets::outputs,
    events::parked,
    pools::waits_for_output,
    pools::wedged,
    pools::hot_key,
    pools::busy_share,
    pools::no_shares,
    pools::paused,
    paused_shares::paused_shares,
    events::dead_letters,
    inputs::files_at_risk,
    inputs::remarks,
    sizes::held_by_its_rate,
    sizes::sizes,
    pools::overloaded,
    inputs::held,
];

/// All findings: causes, the worst first, each followed by its consequences.
pub(super) fn findings(seen: &Seen) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in RULES {
        rule(seen, &mut found);
    }
    chains::in_order(found)
}

/// The answer to `GET /api/advice`.
pub(super) fn view(seen: &Seen) -> Value {
    let found = findings(seen);
    let nothing = found.is_empty().then(|| nothing(seen));
    json!({ "findings": list(seen, &found), "nothing": nothing })
}

/// The findings as JSON.
pub(super) fn list(seen: &Seen, found: &[Finding]) -> Value {
    found.iter().map(|finding| one(seen, finding)).collect()
}

fn one(seen: &Seen, finding: &Finding) -> Value {
    json!({
        "kind": finding.kind,
        "severity": finding.severity.word(),
        "about": finding.about,
        "what": finding.what,
        "figures": finding.figures,
        "why": finding.why,
        "change": finding.change,
        "lines": finding.lines.as_ref().map(|lines| lines.text(seen.format)),
        "ask": finding.ask,
        "command": finding.ask.as_deref().and_then(command::command),
        "lasted_ms": finding.lasted.map(|lasted| lasted.as_millis() as u64),
        "follows": finding.follows,
    })
}

/// Why there is no finding.
fn nothing(seen: &Seen) -> String {
    let mut text =
        "Nothing to say: no pool, key, handler, output or input needs a change.".to_owned();
    let looked: Vec<_> = seen.pools.iter().filter(|pool| pool.autotune != Autotune::Off).collect();
    let waits = looked.iter().filter(|pool| pool.advice.is_none()).count();
    match (looked.len(), waits) {
        (0, _) => text.push_str(" The sizes of pools are not watched: their `autotune` is `off`."),
        (_, 0) => {}
        (_, _) => text.push_str(
            " Advice on the sizes of pools comes once they were watched for a period \
             (`advisor.period`).",
        ),
    }
    text
}
