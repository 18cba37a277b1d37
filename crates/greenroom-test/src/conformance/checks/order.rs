//! Order per key, with slow and failing handlers; also for events that arrive during the run.

use super::super::{ability::Ability, scene::Scene};

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let (items, plan) = (scene.events(600)?, scene.plan());
    let later = if scene.can(Ability::IsLive) { scene.events(300)? } else { Vec::new() };
    scene.run(plan, &items, async |run| {
        run.until("a hundred acknowledged", |book| book.acknowledged() >= 100).await?;
        run.publish(&later).await?;
        run.until_done().await?;
        run.drain().await.map(drop)
    })
}
