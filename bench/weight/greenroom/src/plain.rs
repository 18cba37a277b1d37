//! An actor by itself. `N` makes types of it.

use std::{convert::Infallible, time::Duration};

use greenroom::{Actor, Context, Pool, Stop};

struct Adder<const N: usize>(u64);

struct Add<const N: usize>(u64);

impl<const N: usize> Actor for Adder<N> {
    type Message = Add<N>;
    type Reply = u64;
    type Error = Infallible;

    async fn handle(&mut self, add: Add<N>, _: &mut Context<Self>) -> Result<u64, Infallible> {
        self.0 += add.0;
        Ok(self.0)
    }
}

pub async fn sum<const N: usize>() -> Result<u64, Box<dyn std::error::Error>> {
    let adder = Pool::one(Adder::<N>(0)).spawn().await?;
    adder.send(Add(1)).await?;
    let sum = adder.call(Add(2)).await?;
    adder.stop(Stop::within(Duration::from_secs(1))).await;
    Ok(sum)
}
