//! kanal: its asynchronous senders and receivers, on tokio's tasks.

use kanal::{AsyncReceiver, AsyncSender};

use crate::{message::Payload, peers::queues::Channel, runtime::Runtime};

pub struct Kanal;

impl Channel for Kanal {
    type Stage = Runtime;
    type Sender<M: Payload> = AsyncSender<M>;
    type Receiver<M: Payload> = AsyncReceiver<M>;

    fn bounded<M: Payload>(room: usize) -> (AsyncSender<M>, AsyncReceiver<M>) {
        kanal::bounded_async(room)
    }

    async fn send<M: Payload>(to: &AsyncSender<M>, message: M) -> bool {
        to.send(message).await.is_ok()
    }

    fn try_send<M: Payload>(to: &AsyncSender<M>, message: M) -> bool {
        to.try_send(message).unwrap_or(false)
    }

    async fn receive<M: Payload>(from: &AsyncReceiver<M>) -> Option<M> {
        from.recv().await.ok()
    }
}
