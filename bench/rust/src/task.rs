//! What a worker does with each message, the same in every system.

use std::{future::Future, sync::Arc};

use crate::{
    message::{Counter, Counters, Message, Payload},
    work::Work,
};

pub trait Task: Send + Unpin + 'static {
    type Message: Payload;

    /// Whether handling may wait for something. Where a system offers a plain function for handlers
    /// that do not, they get it.
    const WAITS: bool;

    fn take(&mut self, message: Self::Message) -> impl Future<Output = u64> + Send;
}

/// Makes the task of each worker, again for one that is restarted.
pub trait Make<T>: Fn(usize) -> T + Send + Sync + Clone + 'static {}

impl<T, F: Fn(usize) -> T + Send + Sync + Clone + 'static> Make<T> for F {}

/// Computes, counts, and replies with the number after the message's.
pub struct Counting {
    counter: Arc<Counter>,
    work: Work,
}

impl Counting {
    pub fn make(counters: &Counters, work: Work) -> impl Make<Self> {
        let of = counters.clone();
        move |worker| Self { counter: of.of(worker), work }
    }
}

impl Task for Counting {
    type Message = Message;

    const WAITS: bool = false;

    async fn take(&mut self, message: Message) -> u64 {
        self.work.run(message.seq);
        message.read();
        self.counter.add();
        message.seq + 1
    }
}
