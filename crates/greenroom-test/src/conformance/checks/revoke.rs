//! Partitions are taken away in the middle of the work, and come back: in between, none of their
//! events begins, other partitions continue, and in the end everything is done.

use std::time::Duration;

use greenroom_bus::source::Partition;

use super::super::{items::PARTITIONS, ledger::Book, plan::Plan, running::Running, scene::Scene};

/// How often one is taken away.
const ROUNDS: u32 = 3;

pub(super) fn run(scene: &mut Scene<'_>) -> Result<(), String> {
    let items = scene.events(900)?;
    let plan = Plan { workers: 4, latency: Duration::from_millis(30), ..scene.plan() };
    let (workers, begin) = (plan.workers as u64, plan.seed as u32 % PARTITIONS);
    scene.run(plan, &items, async |run| {
        let mut at_most = 0;
        for round in 0..ROUNDS {
            let partition = Partition((begin + round) % PARTITIONS);
            at_most += away_and_back(run, partition).await? + workers;
        }
        run.until_done().await?;
        run.drain().await?;
        match run.look(Book::count_repeats) {
            repeats if repeats <= at_most => Ok(()),
            repeats => Err(format!(
                "{repeats} events that were acknowledged were given again, where {at_most} were in hand or not committed \
                 when their partition was taken away"
            )),
        }
    })
}

/// Returns how many events had been acknowledged since the last commit when it was taken away.
async fn away_and_back(run: &mut Running<'_>, partition: Partition) -> Result<u64, String> {
    let some = run.look(Book::acknowledged) + 60;
    run.until("sixty more acknowledged", |book| book.acknowledged() >= some || book.is_done())
        .await?;
    let is_another = |of: Partition| of != partition;
    run.revoke(partition).await?;
    let (uncovered, before) = run.look(|book| (book.uncovered(), book.count_done_of(is_another)));
    run.until("another partition going on", |book| {
        book.is_done_of(is_another) || book.count_done_of(is_another) >= before + 10
    })
    .await?;
    run.assign(partition).await?;
    Ok(uncovered)
}
