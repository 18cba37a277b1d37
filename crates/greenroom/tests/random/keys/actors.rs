//! The actors: for single messages, and for batches.

use std::time::Duration;

use greenroom::{Actor, Answer, Context, Delivery, batch::Batch};

use super::{
    model::{InHand, Log},
    program::{Deed, Message},
};

pub(crate) struct Clerk(pub(crate) Log);

impl Actor for Clerk {
    type Message = Message;
    type Reply = u32;
    type Error = u32;

    /// Not always true: a message that was taken out leaves a letter without it.
    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, message: Message, _cx: &mut Context<Self>) -> Result<u32, u32> {
        Ok(message.number)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Message, u32, u32>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, u32> {
        let Some(message) = delivery.message() else { return Err(0) };
        let (number, key, deed) = (message.number, message.key, message.deed);
        let looks = matches!(deed, Deed::LookAndFail(_) | Deed::LookAndPanic(_));
        let mut in_hand = self.0.begin(&[(number, key)]);
        let _taken = (!looks).then(|| delivery.take());
        act(&in_hand, number, deed).await;
        in_hand.ended = true;
        if fails(&in_hand, number, deed) {
            return Err(number);
        }
        in_hand.done.push(number);
        Ok(Answer::Reply(number))
    }
}

pub(crate) struct Scribe(pub(crate) Log, pub(crate) usize);

impl Actor for Scribe {
    type Message = Batch<Message>;
    type Reply = Vec<Result<u32, u32>>;
    type Error = u32;

    async fn handle(
        &mut self,
        messages: Batch<Message>,
        _cx: &mut Context<Self>,
    ) -> Result<Self::Reply, u32> {
        let numbers: Vec<_> = messages.iter().map(|m| (m.number, m.key)).collect();
        let mut in_hand = self.0.begin(&numbers);
        if messages.len() > self.1 {
            self.0.lock().violations.push(format!("too large a batch: {numbers:?}"));
        }
        for message in messages.iter() {
            act(&in_hand, message.number, message.deed).await;
        }
        in_hand.ended = true;
        let mut results = Vec::new();
        for message in messages.iter() {
            let number = message.number;
            let failed = fails(&in_hand, number, message.deed);
            if failed && matches!(message.deed, Deed::FailAll(_)) {
                return Err(number);
            }
            results.push(if failed { Err(number) } else { Ok(number) });
        }
        in_hand.done.extend(results.iter().flatten());
        Ok(results)
    }
}

/// The actor of the pool that takes over messages for which there is no room.
pub(crate) struct Elsewhere(pub(crate) Log);

impl Actor for Elsewhere {
    type Message = Message;
    type Reply = u32;
    type Error = u32;

    async fn handle(&mut self, message: Message, _cx: &mut Context<Self>) -> Result<u32, u32> {
        self.0.lock().ends(message.number, "elsewhere");
        Ok(message.number)
    }
}

async fn act(in_hand: &InHand, number: u32, deed: Deed) {
    let now = |times: u32| in_hand.attempt(number) <= times;
    match deed {
        Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Deed::Yield => tokio::task::yield_now().await,
        Deed::Panic(times) | Deed::LookAndPanic(times) if now(times) => panic!("on purpose"),
        Deed::Hang(times) if now(times) => tokio::time::sleep(Duration::from_millis(200)).await,
        _ => {}
    }
}

fn fails(in_hand: &InHand, number: u32, deed: Deed) -> bool {
    match deed {
        Deed::Fail(times) | Deed::LookAndFail(times) | Deed::FailAll(times) => {
            in_hand.attempt(number) <= times
        }
        _ => false,
    }
}
