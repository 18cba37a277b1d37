//! What an operator is advised to do, from what the daemon sees (O13).
//!
//! ```text
//! engine, configuration, layers ──▶ Seen (plain figures) ──▶ rules: sizes, troubles ──▶ findings, the worst first
//! ```
//!
//! A finding says what is so, the figures, why it matters, what to change, and the exact lines of
//! the configuration or the request that does it. Each rule is a function of what was seen, without
//! a clock. Nothing is looked at unless a client asks; what pools are advised about their sizes
//! comes from the advisor of each ([`greenroom::advisor`]).

mod finding;
mod lines;
mod recent;
mod seen;
mod sizes;
#[cfg(test)]
mod tests;
mod troubles;

use serde_json::{Value, json};

use self::finding::Finding;
pub(super) use self::{finding::Severity, recent::Recent, seen::Seen};
use crate::config::Autotune;

/// A rule looks at all that was seen, and adds what it finds.
type Rule = fn(&Seen, &mut Vec<Finding>);

/// In the order in which findings of one severity are told.
const RULES: &[Rule] = &[
    troubles::workers_given_up,
    troubles::inputs,
    troubles::refused_and_in_outage,
    troubles::outputs,
    troubles::parked,
    troubles::wedged,
    troubles::paused,
    troubles::breakers,
    troubles::dead_letters,
    troubles::files_at_risk,
    troubles::remarks,
    sizes::held_by_its_rate,
    sizes::sizes,
    sizes::kept,
    // The last: where another finding explains it, this one adds nothing.
    troubles::stalled,
];

/// All that is found, the worst first.
pub(super) fn findings(seen: &Seen) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in RULES {
        rule(seen, &mut found);
    }
    found.sort_by_key(|finding| finding.severity);
    found
}

/// As `GET /api/advice` answers.
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
        "severity": finding.severity.word(),
        "about": finding.about,
        "what": finding.what,
        "figures": finding.figures,
        "why": finding.why,
        "change": finding.change,
        "lines": finding.lines.as_ref().map(|lines| lines.text(seen.format)),
        "ask": finding.ask,
        "done": finding.done,
    })
}

/// Why there is nothing to say.
fn nothing(seen: &Seen) -> String {
    let mut text =
        "Nothing to say: no pool, key, handler, output or input needs a change.".to_owned();
    let looked: Vec<_> = seen.pools.iter().filter(|pool| pool.autotune != Autotune::Off).collect();
    let waits = looked.iter().filter(|pool| pool.advice.is_none()).count();
    match (looked.len(), waits) {
        (0, _) => text.push_str(" Nobody looks at the sizes of pools: their `autotune` is `off`."),
        (_, 0) => {}
        (_, _) => text.push_str(
            " What sizes pools should have is said once they were looked at for a period \
             (`advisor.period`).",
        ),
    }
    text
}
