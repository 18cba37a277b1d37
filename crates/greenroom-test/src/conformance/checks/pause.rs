//! A paused partition gives nothing, by level and not by edge, and later continues in place.

use std::sync::Arc;

use greenroom_bus::source::Partition;
use tokio::sync::Semaphore;

use super::super::{
    ability::Ability, connector::Item, ledger::Book, plan::Plan, running::Running, scene::Scene,
};

const FIRST: Partition = Partition(0);
const SECOND: Partition = Partition(1);

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    match scene.can(Ability::Partitions) {
        true => {
            each(scene)?;
            behind_a_full_pool(scene)
        }
        false => whole(scene),
    }
}

/// A source with one partition is paused as a whole.
fn whole(scene: &mut Scene<'_>) -> Result<(), String> {
    let (items, plan) = (scene.events(400)?, scene.plan());
    scene.run_paused(plan, &items, async |run| {
        gives_nothing(run, Partition::ONLY).await?;
        run.pause(Partition::ONLY)?;
        run.resume(Partition::ONLY)?;
        run.until("fifty acknowledged", |book| book.acknowledged() >= 50).await?;
        run.pause(Partition::ONLY)?;
        // A pull that was in progress may end.
        run.quiet().await;
        gives_nothing(run, Partition::ONLY).await?;
        run.resume(Partition::ONLY)?;
        run.until_done().await?;
        run.drain().await.map(drop)
    })
}

/// Several partitions are paused one by one, by a list that replaces the last.
fn each(scene: &mut Scene<'_>) -> Result<(), String> {
    let (items, plan) = (scene.events(400)?, scene.plan());
    let later = if scene.can(Ability::IsLive) { scene.events(200)? } else { Vec::new() };
    scene.run_paused(plan, &items, async |run| {
        run.until("the others acknowledged", |book| book.is_done_of(|of| of != FIRST)).await?;
        gives_nothing(run, FIRST).await?;
        run.pause(SECOND)?;
        run.pause(FIRST)?;
        run.until("told of both", |book| book.is_paused(FIRST) && book.is_paused(SECOND)).await?;
        run.publish(&later).await?;
        run.resume(FIRST)?;
        run.until("all but the second acknowledged", |book| book.is_done_of(|of| of != SECOND))
            .await?;
        gives_nothing(run, SECOND).await?;
        run.resume(SECOND)?;
        run.until_done().await?;
        run.drain().await.map(drop)
    })
}

/// The engine pauses a partition whose events find no room, and resumes it when they do.
fn behind_a_full_pool(scene: &mut Scene<'_>) -> Result<(), String> {
    let items: Vec<Item> = scene.events(400)?;
    let gate = Arc::new(Semaphore::new(0));
    let plan =
        Plan { workers: 1, queue: 4, run_ahead: 30, gate: Some(gate.clone()), ..scene.plan() };
    scene.run(plan, &items, async |run| {
        let all_are_paused = |book: &Book| (0..3).all(|of| book.is_paused(Partition(of)));
        run.until("told that nothing finds room", all_are_paused).await?;
        run.quiet().await;
        gate.add_permits(items.len() * 4);
        run.until_done().await?;
        run.drain().await.map(drop)
    })
}

/// For some time, it gives nothing.
async fn gives_nothing(run: &Running<'_>, partition: Partition) -> Result<(), String> {
    let before = run.look(|book| book.count_given_of(partition));
    run.quiet().await;
    match run.look(|book| book.count_given_of(partition)) - before {
        0 => Ok(()),
        given => Err(format!("partition {partition} is paused, and gave {given} events")),
    }
}
