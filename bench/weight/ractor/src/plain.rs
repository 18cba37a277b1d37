//! An actor by itself. `N` makes types of it.

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

struct Adder<const N: usize>;

enum Message<const N: usize> {
    Add(u64),
    AddAndTell(u64, RpcReplyPort<u64>),
}

impl<const N: usize> Actor for Adder<N> {
    type Msg = Message<N>;
    type State = u64;
    type Arguments = u64;

    async fn pre_start(
        &self,
        _: ActorRef<Message<N>>,
        sum: u64,
    ) -> Result<u64, ActorProcessingErr> {
        Ok(sum)
    }

    async fn handle(
        &self,
        _: ActorRef<Message<N>>,
        message: Message<N>,
        sum: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(add) => *sum += add,
            Message::AddAndTell(add, reply) => {
                *sum += add;
                reply.send(*sum)?;
            }
        }
        Ok(())
    }
}

pub async fn sum<const N: usize>() -> Result<u64, Box<dyn std::error::Error>> {
    let (adder, handle) = Actor::spawn(None, Adder::<N>, 0).await?;
    adder.cast(Message::Add(1))?;
    let sum = call!(adder, Message::AddAndTell, 2)?;
    adder.stop(None);
    handle.await?;
    Ok(sum)
}
