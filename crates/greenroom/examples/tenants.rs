//! One tenant sends a thousand orders at once. Do the others notice?
//!
//! Each order belongs to a tenant, and the workers' time is divided among the tenants with waiting
//! orders. A tenant may have a cap, pay for more, and be held when the service behind it answers
//! 429. The orders of one customer stay in sequence throughout.
//!
//! `cargo run -p greenroom --example tenants`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{error::Error, time::Duration};

use greenroom::{Backoff, prelude::*, shares::ShareLimits};
use tokio::time::{Instant, sleep};

#[derive(Debug, Clone)]
struct Order {
    tenant: &'static str,
    customer: u32,
    /// The service behind refuses the order until then.
    refused_until: Option<Instant>,
}

/// Posts orders to a service.
struct Poster;

impl Actor for Poster {
    type Message = Order;
    type Reply = ();
    type Error = std::io::Error;

    async fn handle(&mut self, order: Order, cx: &mut Context<Self>) -> std::io::Result<()> {
        sleep(Duration::from_millis(5)).await;
        if let Some(until) = order.refused_until
            && let Some(wait) = until.checked_duration_since(Instant::now())
        {
            // 429 with `Retry-After`: the tenant's other orders wait as well.
            cx.hold_share(order.tenant, wait);
            return Err(std::io::Error::other("too many requests"));
        }
        Ok(())
    }
}

fn order(tenant: &'static str, customer: u32) -> Order {
    Order { tenant, customer, refused_until: None }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new(|_slot| Poster)
        .workers(8)
        .ordered_by(|order: &Order| (order.tenant, order.customer))
        .shared_by(|order: &Order| order.tenant)
        .share("paid", ShareLimits::default().weight(3))
        .retry(3, Backoff::new(Duration::from_millis(10), Duration::from_secs(1)))
        .spawn()
        .await?;

    // Eight workers, 5 ms an order: a thousand orders take 625 ms.
    for customer in 0..1_000 {
        pool.send(order("acme", customer)).await?;
    }
    let began = Instant::now();
    pool.call(order("bolt", 1)).await?;
    println!("an order of bolt behind a thousand of acme took {} ms", began.elapsed().as_millis());
    assert!(began.elapsed() <= Duration::from_millis(15));

    // From now on at most two of acme's at a time: six workers are left for the others.
    let shares = pool.admin().shares()?;
    shares.set("acme", ShareLimits::default().in_hand(2))?;
    sleep(Duration::from_millis(20)).await;
    let acme = shares.status("acme");
    println!("{acme}");
    assert_eq!(acme.in_hand, 2);

    // The service says that bolt has to wait. No other tenant waits.
    let refused_until = Some(Instant::now() + Duration::from_secs(1));
    pool.send(Order { refused_until, ..order("bolt", 1) }).await?;
    sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    pool.call(order("cafe", 1)).await?;
    println!("cafe goes on: {} ms", began.elapsed().as_millis());
    assert!(began.elapsed() <= Duration::from_millis(10));
    pool.call(order("bolt", 2)).await?;
    println!("bolt goes on after {} ms", began.elapsed().as_millis());
    assert!(began.elapsed() >= Duration::from_millis(900));

    assert!(pool.stop(Stop::within(Duration::from_secs(10))).await.left_over.is_empty());
    Ok(())
}
