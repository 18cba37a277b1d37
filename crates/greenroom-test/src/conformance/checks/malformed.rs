//! Each record that is no event becomes one dead letter with its bytes.

use super::super::{ability::Ability, connector::Body, scene::Scene};
use super::restart::nothing_is_left;

/// The first bytes of a record that is no event.
const NO_EVENT: &str = "{ no event";

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let plan = scene.plan();
    let raw = |number: u64| Body::Malformed(format!("{NO_EVENT} {number}").into_bytes());
    let items = scene.items().mixed(300, raw)?;
    scene.run(plan, &items, async |run| {
        run.until_done().await?;
        run.drain().await?;
        run.look(|book| {
            let expected = |name: &str| u32::from(name.starts_with(NO_EVENT));
            let wrong = book.letters().find(|(name, letters)| *letters != expected(name));
            match wrong {
                Some((name, letters)) => Err(format!("{name:?} has {letters} dead letters")),
                None => Ok(()),
            }
        })
    })?;
    let goes_on = scene.can(Ability::Replays) && scene.can(Ability::KeepsPositions);
    if goes_on { nothing_is_left(scene) } else { Ok(()) }
}
