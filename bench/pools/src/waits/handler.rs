//! What waits, on every side the same.

use std::{convert::Infallible, sync::Arc, time::Duration};

use greenroom::prelude::*;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Failure,
    message::{Counter, Message},
    stage::Stage,
};

const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Lets other tasks have a turn, once.
    Yields,
    /// Awaits a reply from another task.
    Replies,
    /// Sleeps for a millisecond.
    Sleeps,
    /// Sleeps for a millisecond in one message of ten.
    Sometimes,
}

impl Wait {
    pub const ALL: [Self; 4] = [Self::Yields, Self::Replies, Self::Sleeps, Self::Sometimes];

    pub fn name(self) -> &'static str {
        match self {
            Self::Yields => "yield",
            Self::Replies => "reply",
            Self::Sleeps => "sleep",
            Self::Sometimes => "sometimes",
        }
    }
}

/// Who is asked for a reply.
pub type Asked = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// A task that replies to whoever asks, as a client of a database does.
pub fn responder(stage: &Stage) -> Result<Asked, Failure> {
    let (asked, mut asks) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    stage.spawn(async move {
        while let Some(ask) = asks.recv().await {
            let _ = ask.send(());
        }
    })?;
    Ok(asked)
}

#[derive(Clone)]
pub struct Waiter {
    pub counter: Arc<Counter>,
    pub wait: Wait,
    pub asked: Asked,
}

impl Waiter {
    /// Waits, and does not count.
    pub async fn wait(&self, message: &Message) {
        match self.wait {
            Wait::Yields => tokio::task::yield_now().await,
            Wait::Replies => self.ask().await,
            Wait::Sleeps => tokio::time::sleep(NAP).await,
            Wait::Sometimes if message.seq.is_multiple_of(10) => tokio::time::sleep(NAP).await,
            Wait::Sometimes => {}
        }
    }

    async fn ask(&self) {
        let (ask, reply) = oneshot::channel();
        // A message that is not answered is not counted, and the run fails.
        if self.asked.send(ask).is_err() || reply.await.is_err() {
            std::future::pending().await
        }
    }

    pub async fn take(&self, message: &Message) -> u64 {
        self.wait(message).await;
        self.counter.add();
        message.seq + 1
    }
}

impl Actor for Waiter {
    type Message = Message;
    type Reply = u64;
    type Error = Infallible;

    async fn handle(
        &mut self,
        message: Message,
        _cx: &mut Context<Self>,
    ) -> Result<u64, Infallible> {
        Ok(self.take(&message).await)
    }
}
