//! The pool of `kameo_actors`: an actor that hands each message to the worker with the fewest.

use kameo::prelude::*;
use kameo_actors::pool::{ActorPool, Dispatch};

use crate::{
    Failure, message,
    peers::kameo::Worker,
    route::Route,
    runtime::Runtime,
    system::{Caller, Calls, Handle, MAILBOX, System, To},
    task::{Counting, Make, Task},
};

pub struct KameoPool;

impl System for KameoPool {
    type Stage = Runtime;
    type To<T: Task> = Pool<T>;

    const BOUNDED: bool = true;

    async fn start<T: Task>(
        _stage: &Runtime,
        workers: usize,
        make: impl Make<T>,
        _route: Route,
    ) -> Result<Pool<T>, Failure> {
        let mut started = 0;
        let pool = ActorPool::new(workers, move || {
            let worker = started % workers;
            started += 1;
            Worker::start(make(worker))
        });
        Ok(Pool(ActorPool::spawn_with_mailbox(pool, mailbox::bounded(MAILBOX))))
    }
}

pub struct Pool<T: Task>(ActorRef<ActorPool<Worker<T>>>);

impl<T: Task> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Task> Handle for Pool<T> {}

impl<T: Task> To<T::Message> for Pool<T> {
    async fn send(&mut self, message: T::Message) -> Result<(), Failure> {
        self.0.tell(Dispatch(message)).send().await.map_err(|error| error.to_string().into())
    }

    fn try_send(&mut self, message: T::Message) -> bool {
        self.0.tell(Dispatch(message)).try_send().is_ok()
    }
}

impl Calls for KameoPool {
    type Caller = Pool<Counting>;

    async fn start_answering(
        stage: &Runtime,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Pool<Counting>, Failure> {
        Self::start(stage, workers, make, Route::turns()).await
    }
}

impl Caller for Pool<Counting> {
    async fn call(&mut self, message: message::Message) -> Result<u64, Failure> {
        self.0.ask(Dispatch(message)).send().await.map_err(|error| error.to_string().into())
    }
}
