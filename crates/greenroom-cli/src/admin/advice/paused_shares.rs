//! The rule about shares that wait for a resume.

use greenroom_bus::engine::{HeldByShare, PausedShare};
use greenroom_config::plural;
use url::form_urlencoded;

use super::{finding::Finding, seen::Seen};

/// One finding a pool: with a share for each endpoint, many of their targets may be gone.
pub(super) fn paused_shares(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some((first, others)) = pool.now.paused_shares.split_first() else { continue };
        let PausedShare { share, by_target, waiting, .. } = first;
        let (by, change) = match by_target {
            true => (
                "its target, which wants nothing more (410)",
                "Resume it once its target takes events again, or make its events go elsewhere.",
            ),
            false => ("hand", "Resume it when that is over."),
        };
        let more = match others.len() {
            0 => String::new(),
            1 => "; 1 more share of the pool is paused".to_owned(),
            more => format!("; {more} more shares of the pool are paused"),
        };
        let wait = if *waiting == 1 { "waits" } else { "wait" };
        found.push(
            Finding::warning(
                "share_paused",
                format!("pools.{}", pool.name),
                format!("The share `{share}` of the pool `{}` is paused by {by}", pool.name),
            )
            .figures(format!("{} of it {wait}{more}", plural(*waiting, "event")))
            .why("None of its events are attempted until it is resumed. Other shares go on.")
            .change(change)
            .ask(resume(&pool.name, share)),
        );
    }
}

/// The request that resumes the share that stops an input, if it is paused.
pub(super) fn resumes(seen: &Seen, held: &HeldByShare) -> Option<String> {
    let pool = seen.pools.iter().find(|pool| pool.name == held.pool)?;
    let is_it = |paused: &&PausedShare| held.share.as_ref() == Some(&paused.share);
    let paused = pool.now.paused_shares.iter().find(is_it)?;
    Some(resume(&pool.name, &paused.share))
}

fn resume(pool: &str, share: &str) -> String {
    let share: String = form_urlencoded::byte_serialize(share.as_bytes()).collect();
    // In a path, `+` is a plus.
    format!("POST /api/pools/{pool}/shares/{}/resume", share.replace('+', "%20"))
}
