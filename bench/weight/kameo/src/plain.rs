//! An actor by itself. `N` makes types of it.

use kameo::{error::Infallible, prelude::*};

struct Adder<const N: usize>(u64);

struct Add<const N: usize>(u64);

impl<const N: usize> Actor for Adder<N> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(adder: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(adder)
    }
}

impl<const N: usize> Message<Add<N>> for Adder<N> {
    type Reply = u64;

    async fn handle(&mut self, add: Add<N>, _: &mut Context<Self, u64>) -> u64 {
        self.0 += add.0;
        self.0
    }
}

pub async fn sum<const N: usize>() -> Result<u64, Box<dyn std::error::Error>> {
    let adder = Adder::<N>::spawn(Adder(0));
    adder.tell(Add(1)).await?;
    let sum = adder.ask(Add(2)).await?;
    adder.stop_gracefully().await?;
    adder.wait_for_shutdown().await;
    Ok(sum)
}
