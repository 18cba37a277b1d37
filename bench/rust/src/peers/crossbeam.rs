//! crossbeam-channel: blocking senders and receivers, on a thread for each producer and worker.

use crossbeam_channel::{Receiver, Sender};

use crate::{message::Payload, peers::queues::Channel, threads::Threads};

pub struct Crossbeam;

impl Channel for Crossbeam {
    type Stage = Threads;
    type Sender<M: Payload> = Sender<M>;
    type Receiver<M: Payload> = Receiver<M>;

    fn bounded<M: Payload>(room: usize) -> (Sender<M>, Receiver<M>) {
        crossbeam_channel::bounded(room)
    }

    async fn send<M: Payload>(to: &Sender<M>, message: M) -> bool {
        to.send(message).is_ok()
    }

    fn try_send<M: Payload>(to: &Sender<M>, message: M) -> bool {
        to.try_send(message).is_ok()
    }

    async fn receive<M: Payload>(from: &Receiver<M>) -> Option<M> {
        from.recv().ok()
    }
}
