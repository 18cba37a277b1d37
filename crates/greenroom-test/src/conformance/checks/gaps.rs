//! Positions that are never given are not waited for: a commit passes them.

use super::super::{ability::Ability, connector::Body, running::Running, scene::Scene};
use super::restart::nothing_is_left;

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let plan = scene.plan();
    let keeps = scene.can(Ability::KeepsPositions);
    let items = scene.items().mixed(300, |_| Body::Gap)?;
    scene.run(plan, &items, async |run| {
        run.until_done().await?;
        if keeps {
            run.until_committed().await?;
            nothing_is_open(run)?;
        }
        run.drain().await.map(drop)
    })?;
    if keeps && scene.can(Ability::Replays) { nothing_is_left(scene) } else { Ok(()) }
}

/// Each partition reports its position, and waits for nothing.
fn nothing_is_open(run: &Running<'_>) -> Result<(), String> {
    for partition in run.view()?.partitions {
        let number = partition.partition;
        let Some(standing) = partition.standing else {
            return Err(format!(
                "its positions are kept, and partition {number} does not say where it stands"
            ));
        };
        if standing.oldest_open != standing.next {
            let (open, next) = (standing.oldest_open, standing.next);
            return Err(format!(
                "everything is acknowledged, and of partition {number} position {open} is open still, below {next}"
            ));
        }
    }
    Ok(())
}
