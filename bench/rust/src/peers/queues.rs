//! What people write by hand around channels: workers that receive, with a channel for
//! each or one that all share.

use std::{future::Future, marker::PhantomData};

use tokio::sync::oneshot;

use crate::{
    Failure,
    message::{Message, Payload},
    route::Route,
    runtime::Runtime,
    stage::Stage,
    system::{Caller, Calls, Handle, MAILBOX, System, To},
    task::{Counting, Make, Task},
};

/// A bounded channel of some crate, and where its tasks run.
pub trait Channel: 'static {
    type Stage: Stage;
    type Sender<M: Payload>: Clone + Send + Sync + 'static;
    type Receiver<M: Payload>: Clone + Send + Sync + 'static;

    fn bounded<M: Payload>(room: usize) -> (Self::Sender<M>, Self::Receiver<M>);

    /// Whether the message has got there: not where all receivers are gone.
    fn send<M: Payload>(
        to: &Self::Sender<M>,
        message: M,
    ) -> impl Future<Output = bool> + Send + use<'_, Self, M>;

    fn try_send<M: Payload>(to: &Self::Sender<M>, message: M) -> bool;

    /// Nothing where all senders are gone.
    fn receive<M: Payload>(
        from: &Self::Receiver<M>,
    ) -> impl Future<Output = Option<M>> + Send + use<'_, Self, M>;
}

/// A channel for each worker.
pub struct Own<C>(PhantomData<C>);

/// One channel for all workers, with as much room as those of [`Own`] together.
pub struct Shared<C>(PhantomData<C>);

impl<C: Channel> System for Own<C> {
    type Stage = C::Stage;
    type To<T: Task> = Senders<C, T::Message>;

    const BOUNDED: bool = true;

    async fn start<T: Task>(
        stage: &C::Stage,
        workers: usize,
        make: impl Make<T>,
        route: Route,
    ) -> Result<Senders<C, T::Message>, Failure> {
        let start = |worker| {
            let (sender, receiver) = C::bounded(MAILBOX);
            stage.spawn(worker, work::<C, T>(receiver, make(worker)));
            sender
        };
        Ok(Senders { senders: (0..workers).map(start).collect(), route })
    }
}

impl<C: Channel> System for Shared<C> {
    type Stage = C::Stage;
    type To<T: Task> = Senders<C, T::Message>;

    const BOUNDED: bool = true;

    async fn start<T: Task>(
        stage: &C::Stage,
        workers: usize,
        make: impl Make<T>,
        route: Route,
    ) -> Result<Senders<C, T::Message>, Failure> {
        let (sender, receiver) = C::bounded(MAILBOX * workers);
        for worker in 0..workers {
            stage.spawn(worker, work::<C, T>(receiver.clone(), make(worker)));
        }
        Ok(Senders { senders: vec![sender], route })
    }
}

async fn work<C: Channel, T: Task>(receiver: C::Receiver<T::Message>, mut task: T) {
    while let Some(message) = C::receive(&receiver).await {
        task.take(message).await;
    }
}

pub struct Senders<C: Channel, M: Payload> {
    senders: Vec<C::Sender<M>>,
    route: Route,
}

impl<C: Channel, M: Payload> Clone for Senders<C, M> {
    fn clone(&self) -> Self {
        Self { senders: self.senders.clone(), route: self.route.clone() }
    }
}

impl<C: Channel, M: Payload> Senders<C, M> {
    fn pick(&mut self, message: &M) -> &C::Sender<M> {
        &self.senders[self.route.pick(message.key(), self.senders.len())]
    }
}

impl<C: Channel, M: Payload> Handle for Senders<C, M> {
    fn begin(&mut self, place: usize) {
        self.route.begin(place);
    }
}

impl<C: Channel, M: Payload> To<M> for Senders<C, M> {
    async fn send(&mut self, message: M) -> Result<(), Failure> {
        let to = self.pick(&message);
        if C::send(to, message).await { Ok(()) } else { Err("a worker has ended".into()) }
    }

    fn try_send(&mut self, message: M) -> bool {
        let to = self.pick(&message);
        C::try_send(to, message)
    }
}

/// A message with where its reply goes.
pub struct Asked<P> {
    pub message: Message,
    pub port: P,
}

impl<P: Send + 'static> Payload for Asked<P> {
    fn key(&self) -> u64 {
        self.message.key
    }
}

/// Where a reply goes.
pub trait Port: Send + 'static {
    fn reply(self, reply: u64);
}

impl Port for oneshot::Sender<u64> {
    fn reply(self, reply: u64) {
        // A caller that is gone needs no reply.
        let _ = self.send(reply);
    }
}

/// Replies as well.
pub struct Answering<P> {
    task: Counting,
    port: PhantomData<fn(P)>,
}

impl<P: Port> Answering<P> {
    pub fn make(make: impl Make<Counting>) -> impl Make<Self> {
        move |worker| Self { task: make(worker), port: PhantomData }
    }
}

impl<P: Port> Task for Answering<P> {
    type Message = Asked<P>;

    const WAITS: bool = false;

    async fn take(&mut self, asked: Asked<P>) -> u64 {
        let reply = self.task.take(asked.message).await;
        asked.port.reply(reply);
        reply
    }
}

impl<C: Channel<Stage = Runtime>> Caller for Senders<C, Asked<oneshot::Sender<u64>>> {
    async fn call(&mut self, message: Message) -> Result<u64, Failure> {
        let (port, reply) = oneshot::channel();
        self.send(Asked { message, port }).await?;
        Ok(reply.await?)
    }
}

impl<C: Channel<Stage = Runtime>> Calls for Own<C> {
    type Caller = Senders<C, Asked<oneshot::Sender<u64>>>;

    async fn start_answering(
        stage: &Runtime,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Self::Caller, Failure> {
        Self::start(stage, workers, Answering::make(make), Route::turns()).await
    }
}

impl<C: Channel<Stage = Runtime>> Calls for Shared<C> {
    type Caller = Senders<C, Asked<oneshot::Sender<u64>>>;

    async fn start_answering(
        stage: &Runtime,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Self::Caller, Failure> {
        Self::start(stage, workers, Answering::make(make), Route::turns()).await
    }
}
