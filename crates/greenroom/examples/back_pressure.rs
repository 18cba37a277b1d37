//! What happens if more is sent than can be handled?
//!
//! Every message that is accepted and not started counts against the capacity. When that is used
//! up, the sender notices: it waits, gets its message back, or the pool drops a message, depending
//! on the pool's overflow policy.
//!
//! `cargo run -p greenroom --example back_pressure`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, error::Error, time::Duration};

use greenroom::{Overflow, TrySendError, prelude::*};
use tokio::time::Instant;

/// How long a message takes.
const TAKES: Duration = Duration::from_millis(10);
const SOON: Stop = Stop::within(Duration::from_secs(1));

/// Handles one page at a time.
struct Printer;

impl Actor for Printer {
    type Message = u32;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, _page: u32, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        tokio::time::sleep(TAKES).await;
        Ok(())
    }
}

type Printing = Overflow<u32, (), Infallible>;

/// One worker, and room for 2 messages.
async fn printer(overflow: Printing) -> Result<Pool<Printer>, Box<dyn Error>> {
    Ok(Pool::new(|_slot| Printer).workers(1).capacity(2).overflow(overflow).spawn().await?)
}

/// Offers 5 pages at once. Returns how many were accepted, and how many were handled in the end.
async fn flood(name: &str, pool: Pool<Printer>) -> (usize, u64) {
    let accepted = (0..5).filter(|page| pool.try_send(*page).is_ok()).count();
    let stats = pool.stop(SOON).await.stats;
    println!("{name}: {accepted} of 5 accepted, {} handled here", stats.handled);
    (accepted, stats.handled)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = printer(Overflow::Wait).await?;

    // `send` waits for room, first come, first served: the sender goes as fast as the workers do.
    let began = Instant::now();
    for page in 0..10 {
        pool.send(page).await?;
    }
    println!("send: 10 pages took the sender {} ms", began.elapsed().as_millis());
    assert!(began.elapsed() >= 7 * TAKES); // but the last three, which are in hand and in line

    // `try_send` never waits, and gives the message back.
    while pool.try_send(77).is_ok() {}
    let refused = pool.try_send(78);
    assert!(matches!(refused, Err(TrySendError::Full(78))));
    println!("try_send: full, and here is page 78 back");

    // `reserve` waits for room first, so that an expensive message is made only when there is a
    // place for it.
    let permit = pool.reserve().await?;
    permit.send(79)?;
    println!("reserve: a page was made when there was room for it");
    assert!(pool.stop(SOON).await.left_over.is_empty());

    // Pools whose senders must not wait.
    assert_eq!(flood("Reject", printer(Overflow::Reject).await?).await, (2, 2));
    assert_eq!(flood("DropNewest", printer(Overflow::DropNewest).await?).await, (2, 2));
    assert_eq!(flood("DropOldest", printer(Overflow::DropOldest).await?).await, (5, 2));
    let other = Pool::new(|_slot| Printer).workers(1).spawn().await?;
    let fallback = Overflow::Fallback(other.address());
    assert_eq!(flood("Fallback", printer(fallback).await?).await, (5, 2));
    let others = other.stop(SOON).await.stats.handled;
    println!("Fallback: {others} handled by the other pool");
    assert_eq!(others, 3);
    Ok(())
}
