//! How do I handle the events of many orders, in sequence for each order, with only a few numbers
//! to set?
//!
//! `cargo run -p greenroom --example event_pool`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{error::Error, time::Duration};

use greenroom::{
    CallError, EventPool, SendError,
    event_pool::{EventPoolConfig, Keyed, Preset},
    prelude::*,
};

/// An event of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Created,
    Paid,
    Shipped,
}

struct Orders;

impl Actor for Orders {
    type Message = Keyed<u64, Event>;
    type Reply = String;
    type Error = &'static str;

    async fn handle(
        &mut self,
        event: Self::Message,
        _cx: &mut Context<Self>,
    ) -> Result<String, &'static str> {
        let order = event.key.ok_or("an order has a number")?;
        // Order 1 is slow. It delays no other order.
        let takes = if order == 1 { 300 } else { 1 };
        tokio::time::sleep(Duration::from_millis(takes)).await;
        match (order, event.message) {
            (3, Event::Shipped) => Err("no such address"),
            (order, what) => Ok(format!("order {order} is {what:?}")),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = EventPoolConfig::from_yaml("preset: orders\npoolSize: 4\n")?;
    assert_eq!(config, EventPoolConfig { pool_size: Some(4), ..Preset::Orders.into() });
    let mistakes = EventPoolConfig::from_yaml("preset: oders\npool_size: 0\ninbox_sise: 5\n");
    println!("a file with mistakes:\n{}\n", mistakes.expect_err("there are three"));

    let orders = EventPool::new(config, |_slot| Orders)
        .name("orders")
        .key_required()
        .message_size(size_of_val)
        .spawn()
        .await?;
    let memory = orders.stats().memory;
    println!("2,000 messages of 200 bytes: {} bytes, when it is full", memory.estimate);

    // Submitted without waiting; handled in sequence for each order.
    for order in 1..=3 {
        orders.submit(Some(order), Event::Created).await?;
        orders.submit(Some(order), Event::Paid).await?;
    }
    // Waits for the result of the handler, or for how the message ended.
    let shipped = orders.process(Some(2), Event::Shipped).await;
    println!("{}", shipped.map_err(|error| error.to_string())?);
    let failed = orders.process(Some(3), Event::Shipped).await;
    assert_eq!(failed, Err(CallError::Failed("no such address")));
    let keyless = orders.process(None, Event::Paid).await;
    assert!(matches!(keyless, Err(CallError::NotAccepted(SendError::KeyRequired(_)))));
    assert!(orders.stats().pool.handled < 7, "order 1 is still at it");

    let report = orders.stop(Stop::within(Duration::from_secs(30))).await;
    let stats = orders.stats();
    println!("handled {}, left over {}", stats.pool.handled, report.left_over.len());
    let late = orders.process(Some(1), Event::Shipped).await;
    assert!(matches!(late, Err(CallError::NotAccepted(SendError::Stopped(_)))));
    Ok(())
}
