//! Who decides how many workers a pool has, and who knows about it?
//!
//! A kitchen has an actor of its own, the chef. It sets how many cooks there are at most, hires
//! when orders find no room, takes commands from the owner while every cook is busy, and is the
//! last one to leave.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, time::Duration};

use greenroom::{
    Actor, Context, Pool, PoolAdmin, Stop,
    coordinator::{Coordinator, PoolNotice, Setup},
    inspect::Items,
    pool::AdminError,
};

const A_DISH: Duration = Duration::from_millis(20);
const MOST_COOKS: usize = 4;

struct Cook;

impl Actor for Cook {
    type Message = &'static str;
    type Reply = ();
    type Error = Infallible;

    async fn handle(
        &mut self,
        _dish: &'static str,
        _cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        tokio::time::sleep(A_DISH).await;
        Ok(())
    }
}

/// What the owner may say.
enum Order {
    Cooks(usize),
    HowMany,
}

struct Chef;

impl Coordinator<Cook> for Chef {
    type Command = Order;
    type Reply = usize;
    type Error = AdminError;

    async fn started(&mut self, setup: &mut Setup<Cook>) -> Result<(), AdminError> {
        println!("chef: opening with one cook, {MOST_COOKS} at most");
        setup.workers(1).bounds(1..=MOST_COOKS).mailbox(2);
        Ok(())
    }

    async fn command(
        &mut self,
        order: Order,
        kitchen: &PoolAdmin<Cook>,
        _cx: &mut Context<Self>,
    ) -> Result<usize, AdminError> {
        match order {
            Order::Cooks(cooks) => Ok(kitchen.resize(cooks)?.size()),
            Order::HowMany => Ok(kitchen.stats().configured),
        }
    }

    async fn notice(
        &mut self,
        notice: PoolNotice,
        kitchen: &PoolAdmin<Cook>,
        cx: &mut Context<Self>,
    ) -> Result<(), AdminError> {
        match notice {
            PoolNotice::WorkerUp { slot } => println!("chef: cook {slot} is here"),
            PoolNotice::WorkerDown { slot, .. } => println!("chef: cook {slot} has gone"),
            PoolNotice::Saturated => hire(kitchen, cx),
            PoolNotice::Stopped { reason } => println!("chef: closed ({reason}), lights out"),
            _ => {}
        }
        Ok(())
    }
}

/// One more cook, where there may be one more: a full kitchen is no reason to close it.
fn hire(kitchen: &PoolAdmin<Cook>, cx: &Context<Chef>) {
    match kitchen.add(1) {
        Ok(change) => {
            println!("chef: no room for orders, hiring: {} cooks", change.size());
            let _ = cx.publish("cooks", change.size());
        }
        Err(why) => println!("chef: no room for orders, but {why}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kitchen = Pool::new(|_slot| Cook).name("kitchen").coordinator(Chef).spawn().await?;

    for _ in 0..30 {
        kitchen.send("soup").await?;
    }
    println!("owner: cooks now: {}", kitchen.commands().call(Order::HowMany).await?);
    println!("owner: published: {:?}", kitchen.published(&Items::All));
    println!("owner: with two, please: {}", kitchen.commands().call(Order::Cooks(2)).await?);

    let report = kitchen.stop(Stop::within(Duration::from_secs(1))).await;
    println!("owner: {} dishes served", report.stats.handled);
    Ok(())
}
