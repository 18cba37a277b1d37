//! Puts causes before their consequences.
//!
//! ```text
//! outputs.ledger is paused ──▶ workers of pools.billing wait for it ──▶ inputs.shop is held
//! ```

use super::finding::Finding;

/// Causes, the worst first, each followed by its consequences. A chain is as bad as the worst
/// finding in it.
pub(super) fn in_order(mut found: Vec<Finding>) -> Vec<Finding> {
    let abouts: Vec<_> = found.iter().map(|found| found.about.clone()).collect();
    for finding in &mut found {
        let known = |cause: &String| *cause != finding.about && abouts.contains(cause);
        finding.follows = finding.follows.take().filter(known);
    }
    let (mut rest, mut chains): (Vec<_>, Vec<Vec<_>>) = (Vec::new(), Vec::new());
    for finding in found {
        match finding.follows {
            None => chains.push(vec![finding]),
            Some(_) => rest.push(finding),
        }
    }
    // Rules report causes first, so one pass finds the chain of each.
    for finding in rest {
        let is_cause = |of: &Finding| Some(&of.about) == finding.follows.as_ref();
        match chains.iter_mut().find(|chain| chain.iter().any(is_cause)) {
            Some(chain) => chain.push(finding),
            None => chains.push(vec![Finding { follows: None, ..finding }]),
        }
    }
    chains.sort_by_key(|chain| chain.iter().map(|finding| finding.severity).min());
    chains.into_iter().flatten().collect()
}
