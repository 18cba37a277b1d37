//! How do I reach all workers of a pool at once, and join their answers into one?
//!
//! `cargo run -p greenroom --example broadcast_and_split_join`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use greenroom::{gather::SplitJoin, prelude::*};

const WORKERS: usize = 4;

#[derive(Debug, Clone)]
enum Ask {
    /// Forget older data.
    Forget,
    /// How many times were you told to?
    Forgotten,
    Sum(Vec<u64>),
}

struct Shard {
    slot: usize,
    forgotten: u64,
}

impl Actor for Shard {
    type Message = Ask;
    type Reply = u64;
    type Error = String;

    async fn handle(&mut self, ask: Ask, _cx: &mut Context<Self>) -> Result<u64, String> {
        match ask {
            Ask::Forget => self.forgotten += 1,
            Ask::Forgotten if self.slot == 3 => return Err("the disk of shard 3".to_owned()),
            Ask::Forgotten => {}
            Ask::Sum(part) => return Ok(part.iter().sum()),
        }
        Ok(self.forgotten)
    }
}

/// Each worker gets every fourth number.
fn share(all: &Ask, index: usize, of: usize) -> Option<Ask> {
    let Ask::Sum(all) = all else { return Some(all.clone()) };
    Some(Ask::Sum(all.iter().skip(index).step_by(of).copied().collect()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::new(|slot| Shard { slot, forgotten: 0 }).workers(1).spawn().await?;
    // A spawn returns when one worker runs; a change reports when all of them do.
    assert!(pool.admin().resize(WORKERS)?.done(Duration::from_secs(5)).await.is_complete());

    // A copy for each. The type says that there are several answers.
    let shards = pool.broadcast();
    let told = shards.send(Ask::Forget).await?;
    println!("told all shards: {}", told.is_complete());
    assert!(told.is_complete());

    // The answers of all, replies and errors.
    let all = shards.call(Ask::Forgotten).within(Duration::from_secs(1)).all().await?;
    println!("{} replies, {} error", all.successes().count(), all.errors().count());
    assert!(all.is_complete());
    assert!(all.successes().all(|(_slot, times)| *times == 1));
    assert_eq!(all.errors().map(|(slot, _)| slot).collect::<Vec<_>>(), [3]);

    // As many answers as are needed, or the first one.
    let three = shards.call(Ask::Forgotten).quorum(3).await?;
    println!("a quorum of 3: {} replies", three.successes().count());
    assert_eq!(three.successes().count(), 3);
    assert!(shards.call(Ask::Forgotten).quorum(4).await.is_err());
    println!("a quorum of 4: missed, one shard has failed");
    assert_eq!(shards.call(Ask::Forgotten).first().await?.reply, 1);
    println!("the first reply: enough for who asks for one");

    // A part for each, and one answer.
    let joined = SplitJoin::with_split(share, || 0, |sum, _slot, part| sum + part.unwrap_or(0));
    let sum = pool.split_join(joined).call(Ask::Sum((1..=100).collect())).await;
    let sum = sum.map_err(|error| error.to_string())?;
    println!("the sum of 4 parts: {sum}");
    assert_eq!(sum, 5050);

    let stats = pool.stop(Stop::within(Duration::from_secs(1))).await.stats;
    assert!(stats.ledger_holds());
    Ok(())
}
