//! flume: its asynchronous senders and receivers, on tokio's tasks.

use flume::{Receiver, Sender};

use crate::{message::Payload, peers::queues::Channel, runtime::Runtime};

pub struct Flume;

impl Channel for Flume {
    type Stage = Runtime;
    type Sender<M: Payload> = Sender<M>;
    type Receiver<M: Payload> = Receiver<M>;

    fn bounded<M: Payload>(room: usize) -> (Sender<M>, Receiver<M>) {
        flume::bounded(room)
    }

    async fn send<M: Payload>(to: &Sender<M>, message: M) -> bool {
        to.send_async(message).await.is_ok()
    }

    fn try_send<M: Payload>(to: &Sender<M>, message: M) -> bool {
        to.try_send(message).is_ok()
    }

    async fn receive<M: Payload>(from: &Receiver<M>) -> Option<M> {
        from.recv_async().await.ok()
    }
}
