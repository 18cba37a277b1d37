//! An orderly end in the middle, and another source: it continues if positions are kept, and starts
//! over otherwise.

use super::super::{ability::Ability, ledger::Book, scene::Scene};

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let (items, plan) = (scene.events(400)?, scene.plan());
    scene.run(plan, &items, async |run| {
        run.until("a hundred acknowledged", |book| book.acknowledged() >= 100).await?;
        run.drain().await.map(drop)
    })?;
    let (items, plan) = (scene.events(200)?, scene.plan());
    let keeps = scene.can(Ability::KeepsPositions);
    scene.run(plan, &items, async |run| {
        run.until_done().await?;
        run.drain().await?;
        match run.look(Book::count_repeats) {
            repeats if keeps && repeats > 0 => Err(format!(
                "{repeats} events that were acknowledged and committed were given again"
            )),
            _ => Ok(()),
        }
    })?;
    if keeps { nothing_is_left(scene) } else { Ok(()) }
}

/// Another source of a place whose events are all done gives nothing.
pub(super) fn nothing_is_left(scene: &mut Scene<'_>) -> Result<(), String> {
    let plan = scene.plan();
    scene.run(plan, &[], async |run| {
        run.quiet().await;
        match run.look(Book::count_given) {
            0 => run.drain().await.map(drop),
            given => Err(format!("all was done and committed, and {given} were given again")),
        }
    })
}
