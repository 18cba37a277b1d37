//! A stop in the middle of the work: it ends, every given event is settled, and refused ones are
//! given again.

use super::super::{ability::Ability, ledger::Book, plan::Plan, running::Running, scene::Scene};
use std::time::Duration;

/// The kind of stop.
#[derive(Clone, Copy)]
enum Stop {
    Now,
    Drain,
}

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let items = scene.events(500)?;
    stop_in_the_middle(scene, &items, Stop::Now)?;
    if !scene.can(Ability::Replays) {
        return Ok(());
    }
    stop_in_the_middle(scene, &[], Stop::Drain)?;
    let (plan, keeps) = (scene.plan(), scene.can(Ability::KeepsPositions));
    scene.run(plan, &[], async |run| {
        run.until_done().await?;
        run.drain().await?;
        nothing_twice(run, keeps)
    })
}

fn stop_in_the_middle(
    scene: &mut Scene<'_>,
    items: &[super::super::connector::Item],
    stop: Stop,
) -> Result<(), String> {
    let plan = Plan { workers: 4, latency: Duration::from_millis(12), ..scene.plan() };
    let keeps = scene.can(Ability::KeepsPositions);
    scene.run(plan, items, async |run| {
        let some = run.look(Book::acknowledged) + 40;
        run.until("forty acknowledged", |book| book.acknowledged() >= some).await?;
        let report = match stop {
            Stop::Now => run.stop_now().await?,
            Stop::Drain => run.drain().await?,
        };
        let given = run.look(Book::count_given);
        if report.taken > given {
            return Err(format!("{given} were given, and the report says {}", report.taken));
        }
        nothing_twice(run, keeps)
    })
}

/// After an orderly end, all acknowledged events are committed.
fn nothing_twice(run: &Running<'_>, keeps: bool) -> Result<(), String> {
    match run.look(Book::count_repeats) {
        repeats if keeps && repeats > 0 => {
            Err(format!("{repeats} events that were acknowledged before a stop were given again"))
        }
        _ => Ok(()),
    }
}
