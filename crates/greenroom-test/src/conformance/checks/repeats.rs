//! A crash repeats the open events, and those acknowledged since the last commit began. Once with
//! an event that is stuck forever and everything else committed, once in the middle of the work.

use super::super::{ledger::Book, plan::Plan, running::Running, scene::Scene};
use super::stuck::one_of;

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let items = scene.events(500)?;
    let plan = Plan { stuck: vec![one_of(&items, 20)?], ..scene.plan() };
    let stuck = plan.stuck.clone();
    let at_most = scene.run(plan, &items, async |run| {
        run.until("all but what is stuck", |book| book.is_done_but(&stuck)).await?;
        run.until_committed().await?;
        Ok(run.look(Book::uncovered))
    })?;
    let (items, plan) = (scene.events(500)?, scene.plan());
    let at_most = scene.run(plan, &items, async |run| {
        let some = run.look(Book::acknowledged) + 200;
        run.until("some acknowledged", |book| book.acknowledged() >= some).await?;
        bounded(run, at_most)?;
        Ok(run.look(Book::uncovered))
    })?;
    let plan = scene.plan();
    scene.run(plan, &[], async |run| {
        run.until_done().await?;
        bounded(run, at_most)?;
        run.drain().await.map(drop)
    })
}

fn bounded(run: &Running<'_>, at_most: u64) -> Result<(), String> {
    match run.look(Book::count_repeats) {
        repeats if repeats <= at_most => Ok(()),
        repeats => Err(format!(
            "{repeats} events that were acknowledged were given again, where {at_most} were acknowledged since the last commit \
             began"
        )),
    }
}
