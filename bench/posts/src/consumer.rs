//! Reads a log and is done with everything at once, so that segments can be removed.

use std::time::{Duration, Instant};

use greenroom_bus::{
    settlement::{Outcome, Settled},
    source::{Pull, Source},
    store::log::SegmentLog,
};

use crate::Failed;

/// How often its position is stored, as an engine does it.
const EVERY: Duration = Duration::from_millis(100);

/// Goes on until the log is closed.
pub async fn consume(log: SegmentLog) -> Result<(), Failed> {
    let mut source = log.source("bench")?;
    // Otherwise the log would stay open for its consumer.
    drop(log);
    let committer = source.committer().ok_or("a log commits")?;
    let receipts = source.receipts().ok_or("a log hears of what is settled")?;
    let (mut taken, mut stored) = (Vec::new(), Instant::now());
    committer.commit().await?;
    while source.pull(&mut taken).await? != Pull::End {
        for event in taken.drain(..) {
            receipts.settled(event.position, Settled::Acknowledged(Outcome::Handled));
        }
        if stored.elapsed() >= EVERY {
            stored = Instant::now();
            committer.commit().await?;
        }
    }
    Ok(())
}
