//! A pool of four, in order by key. `N` makes types of it.

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
    let adders = Pool::new(|_slot| Adder::<N>(0)).workers(4);
    let adders = adders.ordered_by(|add: &Add<N>| add.0 % 8).spawn().await?;
    adders.send(Add(1)).await?;
    let sum = adders.call(Add(9)).await?;
    adders.stop(Stop::within(Duration::from_secs(1))).await;
    Ok(sum)
}
