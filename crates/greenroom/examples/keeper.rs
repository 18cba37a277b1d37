//! Who decides how many workers a pool has?
//!
//! A kitchen has a keeper, the chef, which is a separate actor. It sets the number of cooks at the
//! start, hires when orders find no room, takes commands from the owner even while every cook is
//! busy, and leaves last.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, time::Duration};

use greenroom::{
    Actor, Context, Pool, PoolAdmin, Stop, inspect::Items, keeper::PoolNotice, pool::AdminError,
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

/// The messages to the chef, from the owner and from the kitchen.
enum Order {
    Cooks(usize),
    HowMany,
    Notice(PoolNotice),
}

impl From<PoolNotice> for Order {
    fn from(notice: PoolNotice) -> Self {
        Self::Notice(notice)
    }
}

struct Chef {
    kitchen: PoolAdmin<Cook>,
}

impl Actor for Chef {
    type Message = Order;
    type Reply = usize;
    type Error = AdminError;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), AdminError> {
        println!("chef: opening with one cook, {MOST_COOKS} at most");
        self.kitchen.resize(1).map(drop)
    }

    async fn handle(&mut self, order: Order, cx: &mut Context<Self>) -> Result<usize, AdminError> {
        match order {
            Order::Cooks(cooks) => Ok(self.kitchen.resize(cooks)?.size()),
            Order::HowMany => Ok(self.kitchen.stats().configured),
            Order::Notice(notice) => {
                self.hear(&notice, cx);
                Ok(0)
            }
        }
    }
}

impl Chef {
    fn hear(&self, notice: &PoolNotice, cx: &Context<Self>) {
        match notice {
            PoolNotice::WorkerUp { slot } => println!("chef: cook {slot} is here"),
            PoolNotice::WorkerDown { slot, .. } => println!("chef: cook {slot} has gone"),
            PoolNotice::Saturated => self.hire(cx),
            PoolNotice::Stopped { reason } => println!("chef: closed ({reason}), lights out"),
            _ => {}
        }
    }

    /// Hires one more cook, if the bounds allow it.
    fn hire(&self, cx: &Context<Self>) {
        match self.kitchen.add(1) {
            Ok(change) => {
                println!("chef: no room for orders, hiring: {} cooks", change.size());
                let _ = cx.publish("cooks", change.size());
            }
            Err(why) => println!("chef: no room for orders, but {why}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kitchen = Pool::new(|_slot| Cook).name("kitchen").bounds(1..=MOST_COOKS).mailbox(2);
    let (kitchen, chef) = kitchen.keeper(|kitchen| Chef { kitchen }).spawn().await?;

    for _ in 0..30 {
        kitchen.send("soup").await?;
    }
    println!("owner: cooks now: {}", chef.call(Order::HowMany).await?);
    let seen = chef.admin().inspect(&Items::All);
    println!("owner: published: {:?}", seen.workers[0].published);
    println!("owner: with two, please: {}", chef.call(Order::Cooks(2)).await?);

    let report = kitchen.stop(Stop::within(Duration::from_secs(1))).await;
    println!("owner: {} dishes served", report.stats.handled);
    println!("owner: the chef has left: {}", chef.erase().ended().await);
    Ok(())
}
