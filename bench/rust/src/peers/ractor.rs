//! ractor: a factory, which hands each job to a worker, by each of its ways of routing.
//! Its mailbox has no bound.

use std::{marker::PhantomData, time::Duration};

use ractor::{
    Actor, ActorProcessingErr, RpcReplyPort,
    factory::{
        Factory, FactoryArguments, FactoryRef, Job, JobKey, Worker, WorkerId,
        queues::DefaultQueue,
        routing::{
            KeyPersistentRouting, QueuerRouting, RoundRobinRouting, Router, StickyQueuerRouting,
        },
        worker_builder,
    },
};

use crate::{
    Failure,
    message::{Message, Payload},
    peers::queues::{Answering, Asked, Port},
    route::Route,
    runtime::Runtime,
    system::{Caller, Calls, Handle, System, To},
    task::{Counting, Make, Task},
};

/// A factory that is not gone by then is left to its runtime.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// How a factory routes, and by which keys.
pub trait Routing: Send + Sync + 'static {
    type Key: JobKey;
    type Router<M: Payload>: Router<Self::Key, M> + Default;

    fn key(key: u64) -> Self::Key;
}

pub struct RoundRobin;
pub struct Queuer;
pub struct KeyPersistent;
pub struct Sticky;

impl Routing for RoundRobin {
    type Key = ();
    type Router<M: Payload> = RoundRobinRouting<(), M>;

    fn key(_key: u64) {}
}

impl Routing for Queuer {
    type Key = ();
    type Router<M: Payload> = QueuerRouting<(), M>;

    fn key(_key: u64) {}
}

impl Routing for KeyPersistent {
    type Key = u64;
    type Router<M: Payload> = KeyPersistentRouting<u64, M>;

    fn key(key: u64) -> u64 {
        key
    }
}

impl Routing for Sticky {
    type Key = u64;
    type Router<M: Payload> = StickyQueuerRouting<u64, M>;

    fn key(key: u64) -> u64 {
        key
    }
}

/// A worker of the factory; its task is its state.
struct Doing<R, T>(PhantomData<fn(R, T)>);

impl<R: Routing, T: Task> Worker for Doing<R, T> {
    type Key = R::Key;
    type Message = T::Message;
    type Arguments = T;
    type State = T;

    async fn pre_start(
        &self,
        _worker: WorkerId,
        _factory: &FactoryRef<R::Key, T::Message>,
        task: T,
    ) -> Result<T, ActorProcessingErr> {
        Ok(task)
    }

    async fn handle(
        &self,
        _worker: WorkerId,
        _factory: &FactoryRef<R::Key, T::Message>,
        job: Job<R::Key, T::Message>,
        task: &mut T,
    ) -> Result<R::Key, ActorProcessingErr> {
        task.take(job.msg).await;
        Ok(job.key)
    }
}

pub struct Ractor<R>(PhantomData<R>);

type Made<R, T> = Factory<
    <R as Routing>::Key,
    <T as Task>::Message,
    T,
    Doing<R, T>,
    <R as Routing>::Router<<T as Task>::Message>,
    DefaultQueue<<R as Routing>::Key, <T as Task>::Message>,
>;

impl<R: Routing> System for Ractor<R> {
    type Stage = Runtime;
    type To<T: Task> = Jobs<R, T::Message>;

    const BOUNDED: bool = false;

    async fn start<T: Task>(
        _stage: &Runtime,
        workers: usize,
        make: impl Make<T>,
        _route: Route,
    ) -> Result<Jobs<R, T::Message>, Failure> {
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(worker_builder(move |worker| {
                (Doing(PhantomData), make(worker))
            })))
            .queue(DefaultQueue::default())
            .router(R::Router::<T::Message>::default())
            .num_initial_workers(workers)
            .build();
        let (factory, _ended) = Actor::spawn(None, Made::<R, T>::default(), arguments).await?;
        Ok(Jobs(factory))
    }
}

pub struct Jobs<R: Routing, M: Payload>(FactoryRef<R::Key, M>);

impl<R: Routing, M: Payload> Clone for Jobs<R, M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Routing, M: Payload> Handle for Jobs<R, M> {
    async fn stop(self) {
        // Its actors stay in a table of all actors otherwise; those that hang stay there anyway.
        let _ = self.0.stop_and_wait(None, Some(STOPS_WITHIN)).await;
    }
}

impl<R: Routing, M: Payload> To<M> for Jobs<R, M> {
    async fn send(&mut self, message: M) -> Result<(), Failure> {
        let key = R::key(message.key());
        self.0.dispatch(key, message).map_err(|error| error.to_string().into())
    }

    fn try_send(&mut self, message: M) -> bool {
        self.0.dispatch(R::key(message.key()), message).is_ok()
    }
}

impl Port for RpcReplyPort<u64> {
    fn reply(self, reply: u64) {
        // A caller that is gone needs no reply.
        let _ = self.send(reply);
    }
}

impl<R: Routing> Calls for Ractor<R> {
    type Caller = Jobs<R, Asked<RpcReplyPort<u64>>>;

    async fn start_answering(
        stage: &Runtime,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Self::Caller, Failure> {
        Self::start(stage, workers, Answering::make(make), Route::turns()).await
    }
}

impl<R: Routing> Caller for Jobs<R, Asked<RpcReplyPort<u64>>> {
    async fn call(&mut self, message: Message) -> Result<u64, Failure> {
        let asked = |port| Asked { message, port };
        let reply = self.0.call_job(R::key(message.key), asked, None).await;
        let reply = reply.map_err(|error| error.to_string())?;
        reply.success_or::<Failure>("the call got no reply".into())
    }
}
