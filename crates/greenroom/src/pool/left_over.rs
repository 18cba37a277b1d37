//! The unhandled messages of a pool that ends: kept until a stop takes them.

use greenroom_queue::sync::Mutex;

use crate::{CallError, Delivery, ReplyPort};

/// Callers learn at once that the pool has stopped, unless a running stop is to return their calls:
/// no other party could answer them, and they would wait forever.
pub(crate) struct LeftOver<M, R, E>(Mutex<LeftOverState<M, R, E>>);

struct LeftOverState<M, R, E> {
    deliveries: Vec<Delivery<M, R, E>>,
    /// The number of running stops that return calls. While there is one, ports stay in their
    /// deliveries.
    keepers: usize,
}

impl<M, R, E> LeftOver<M, R, E> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(LeftOverState { deliveries: Vec::new(), keepers: 0 }))
    }

    pub(crate) fn give_back(&self, mut deliveries: Vec<Delivery<M, R, E>>) {
        let mut kept = self.0.lock();
        let ports = match kept.keepers {
            0 => take_ports(&mut deliveries),
            _ => Vec::new(),
        };
        kept.deliveries.append(&mut deliveries);
        drop(kept);
        tell_stopped(ports);
    }

    /// Keeps calls open until the guard is dropped.
    pub(crate) fn keep_calls(&self) -> CallKeeper<'_, M, R, E> {
        self.0.lock().keepers += 1;
        CallKeeper(self)
    }

    /// Takes everything that is kept.
    pub(crate) fn take(&self) -> Vec<Delivery<M, R, E>> {
        std::mem::take(&mut self.0.lock().deliveries)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().deliveries.len()
    }
}

/// A stop that returns calls.
pub(crate) struct CallKeeper<'a, M, R, E>(&'a LeftOver<M, R, E>);

impl<M, R, E> Drop for CallKeeper<'_, M, R, E> {
    fn drop(&mut self) {
        let mut kept = self.0.0.lock();
        kept.keepers -= 1;
        let ports = match kept.keepers {
            0 => take_ports(&mut kept.deliveries),
            _ => Vec::new(),
        };
        drop(kept);
        tell_stopped(ports);
    }
}

/// Only the messages: callers learn that the pool has stopped.
pub(crate) fn into_messages<M, R, E>(mut deliveries: Vec<Delivery<M, R, E>>) -> Vec<M> {
    tell_stopped(take_ports(&mut deliveries));
    let mut messages = Vec::with_capacity(deliveries.len());
    for delivery in &mut deliveries {
        if let Some(message) = delivery.message.take() {
            messages.push(message);
        }
    }
    messages
}

fn take_ports<M, R, E>(deliveries: &mut [Delivery<M, R, E>]) -> Vec<ReplyPort<R, E>> {
    let mut ports = Vec::new();
    for delivery in deliveries {
        if let Some(extra) = &mut delivery.extra
            && let Some(port) = extra.port.take()
        {
            ports.push(port);
        }
    }
    ports
}

fn tell_stopped<R, E>(mut ports: Vec<ReplyPort<R, E>>) {
    while let Some(port) = ports.pop() {
        port.resolve(CallError::Stopped);
    }
}
