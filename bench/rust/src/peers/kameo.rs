//! kameo: an actor for each worker with a bounded mailbox, and senders that choose among them.

use kameo::{error::Infallible, prelude::*};

use crate::{
    Failure,
    message::{self, Payload},
    route::Route,
    runtime::Runtime,
    system::{Caller, Calls, Handle, MAILBOX, System, To},
    task::{Counting, Make, Task},
};

pub struct Kameo;

/// The actor.
pub struct Worker<T>(T);

impl<T: Task> Worker<T> {
    pub fn start(task: T) -> ActorRef<Self> {
        Self::spawn_with_mailbox(Self(task), mailbox::bounded(MAILBOX))
    }
}

impl<T: Task> Actor for Worker<T> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(worker: Self, _own: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(worker)
    }
}

impl<T: Task<Message = M>, M: Payload> Message<M> for Worker<T> {
    type Reply = u64;

    async fn handle(&mut self, message: M, _: &mut Context<Self, u64>) -> u64 {
        self.0.take(message).await
    }
}

impl System for Kameo {
    type Stage = Runtime;
    type To<T: Task> = Actors<T>;

    const BOUNDED: bool = true;

    async fn start<T: Task>(
        _stage: &Runtime,
        workers: usize,
        make: impl Make<T>,
        route: Route,
    ) -> Result<Actors<T>, Failure> {
        let actors = (0..workers).map(|worker| Worker::start(make(worker))).collect();
        Ok(Actors { actors, route })
    }
}

pub struct Actors<T: Task> {
    actors: Vec<ActorRef<Worker<T>>>,
    route: Route,
}

impl<T: Task> Clone for Actors<T> {
    fn clone(&self) -> Self {
        Self { actors: self.actors.clone(), route: self.route.clone() }
    }
}

impl<T: Task> Actors<T> {
    fn pick(&mut self, key: u64) -> &ActorRef<Worker<T>> {
        &self.actors[self.route.pick(key, self.actors.len())]
    }
}

impl<T: Task> Handle for Actors<T> {
    fn begin(&mut self, place: usize) {
        self.route.begin(place);
    }
}

impl<T: Task> To<T::Message> for Actors<T> {
    async fn send(&mut self, message: T::Message) -> Result<(), Failure> {
        let actor = self.pick(message.key());
        actor.tell(message).send().await.map_err(|error| error.to_string().into())
    }

    fn try_send(&mut self, message: T::Message) -> bool {
        self.pick(message.key()).tell(message).try_send().is_ok()
    }
}

impl Calls for Kameo {
    type Caller = Actors<Counting>;

    async fn start_answering(
        stage: &Runtime,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Actors<Counting>, Failure> {
        Self::start(stage, workers, make, Route::turns()).await
    }
}

impl Caller for Actors<Counting> {
    async fn call(&mut self, message: message::Message) -> Result<u64, Failure> {
        let actor = self.pick(message.key);
        actor.ask(message).send().await.map_err(|error| error.to_string().into())
    }
}
