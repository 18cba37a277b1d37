//! Nothing is lost: neither in an undisturbed run, nor by a crash while one event is stuck.

use super::super::{ability::Ability, ledger::Book, plan::Plan, scene::Scene};
use super::stuck::one_of;

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let items = scene.events(500)?;
    // Events wait for the pool, so pulls are dropped and repeated whenever one finds room.
    let plan = Plan { workers: 3, queue: 6, ..scene.plan() };
    scene.run(plan, &items, async |run| {
        run.until_done().await?;
        let (report, given) = (run.drain().await?, run.look(Book::count_given));
        match report.taken == given {
            true => Ok(()),
            false => Err(format!("{given} were given, and the report says {}", report.taken)),
        }
    })?;
    if scene.can(Ability::Replays) { after_a_crash(scene) } else { Ok(()) }
}

/// Whatever commits were made, they do not cover the stuck event.
fn after_a_crash(scene: &mut Scene<'_>) -> Result<(), String> {
    let items = scene.events(500)?;
    let plan = Plan { stuck: vec![one_of(&items, 20)?], ..scene.plan() };
    let stuck = plan.stuck.clone();
    let keeps = scene.can(Ability::KeepsPositions);
    scene.run(plan, &items, async |run| {
        run.until("all but what is stuck", |book| book.is_done_but(&stuck)).await?;
        if keeps { run.until_committed().await } else { Ok(()) }
    })?;
    let plan = scene.plan();
    scene.run(plan, &[], async |run| {
        run.until_done().await?;
        run.drain().await.map(drop)
    })
}
