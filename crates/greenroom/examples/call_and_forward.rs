//! How does a call end, and how does a worker pass one on without waiting for the answer?
//!
//! ```text
//! caller ──call──▶ reception ──forward──▶ experts ──reply──┐
//!    ▲                                                     │
//!    └─────────────────────────────────────────────────────┘
//! ```
//!
//! `cargo run -p greenroom --example call_and_forward`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use greenroom::{Address, CallError, prelude::*};

const SOON: Stop = Stop::within(Duration::from_secs(1));

/// Knows how to divide.
struct Expert;

impl Actor for Expert {
    type Message = (u32, u32);
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, (n, by): (u32, u32), cx: &mut Context<Self>) -> Result<u32, String> {
        println!("{} divides {n} by {by}", cx.name());
        n.checked_div(by).ok_or_else(|| "nothing can be divided by 0".to_owned())
    }
}

/// Answers easy questions itself, and passes on the others.
struct Reception {
    experts: Address<(u32, u32), u32, String>,
}

impl Actor for Reception {
    type Message = (u32, u32);
    type Reply = u32;
    type Error = String;

    /// Looks before it takes anything out: a message left in the delivery can still be forwarded
    /// whole.
    async fn receive(
        &mut self,
        delivery: &mut Delivery<(u32, u32), u32, String>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, String> {
        match delivery.message() {
            Some((n, 1)) => Ok(Answer::Reply(*n)),
            Some((0, 0)) => panic!("0 by 0 is too much for the reception"),
            _ => {
                println!("{} forwards", cx.name());
                delivery.forward(&self.experts).await.map_err(|error| error.to_string())?;
                Ok(Answer::Deferred) // free for the next caller at once
            }
        }
    }

    async fn handle(&mut self, _: (u32, u32), _cx: &mut Context<Self>) -> Result<u32, String> {
        Err("`receive` has done all of it".to_owned())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let experts = Pool::new(|_slot| Expert).name("experts").workers(2).spawn().await?;
    let address = experts.address();
    let reception = Pool::new(move |_slot| Reception { experts: address.clone() });
    let reception = reception.name("reception").workers(1).spawn().await?;

    assert_eq!(reception.call((7, 1)).await, Ok(7));
    println!("a reply: from the reception itself");
    assert_eq!(reception.call((42, 6)).await, Ok(7));
    println!("a reply: straight from an expert");
    let failed = reception.call((42, 0)).await;
    assert_eq!(failed, Err(CallError::Failed("nothing can be divided by 0".to_owned())));
    println!("an error: the expert's own");
    let panicked = reception.call((0, 0)).await;
    assert!(matches!(panicked, Err(CallError::Panicked(_))));
    println!("a panic: {:?}; the worker is built again", panicked.err());

    let stats = reception.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.forwarded, stats.dead_lettered), (3, 2, 1));
    let late = reception.call((1, 1)).await.map_err(CallError::into_message);
    assert_eq!(late, Err(Some((1, 1))));
    println!("after the stop: a call is refused at once, and gives its message back");
    experts.stop(SOON).await;
    Ok(())
}
