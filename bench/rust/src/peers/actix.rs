//! actix: an actor for each worker, on the threads of two arbiters in turn, and
//! senders that choose among them.

use std::{
    future::Future,
    pin::pin,
    task::{self, Poll, Waker},
};

use actix::{
    Actor, ActorFutureExt, Addr, Arbiter, AtomicResponse, Context, Handler, System as Actix,
    SystemRunner, WrapFuture,
    dev::{MessageResponse, OneshotSender, SendError},
};

use crate::{
    Failure,
    message::{Message, Payload},
    route::Route,
    stage::{Stage, THREADS},
    system::{Caller, Calls, Handle, MAILBOX, System, To},
    task::{Counting, Make, Task},
};

/// A thread for each arbiter, each with a runtime of its own.
pub struct Arbiters {
    system: SystemRunner,
    arbiters: Vec<Arbiter>,
}

impl Arbiters {
    fn at(&self, place: usize) -> &Arbiter {
        &self.arbiters[place % self.arbiters.len()]
    }
}

impl Stage for Arbiters {
    fn new() -> Result<Self, Failure> {
        let system = Actix::new();
        let arbiters = (0..THREADS).map(|_| Arbiter::try_new()).collect::<Result<_, _>>()?;
        Ok(Self { system, arbiters })
    }

    fn spawn(&self, place: usize, task: impl Future<Output = ()> + Send + 'static) {
        self.at(place).spawn(task);
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.system.block_on(future)
    }
}

impl Drop for Arbiters {
    /// Does not wait for threads that hang.
    fn drop(&mut self) {
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
    }
}

/// What actix sends, with the type of the reply.
struct Sent<M>(M);

impl<M: Payload> actix::Message for Sent<M> {
    type Result = u64;
}

/// The actor. Its task is away while a handler waits; nothing else is handled meanwhile.
struct Worker<T>(Option<T>);

impl<T: Task> Worker<T> {
    fn task(&mut self) -> &mut T {
        self.0.as_mut().expect("an atomic response keeps others out until it gives the task back")
    }
}

impl<T: Task> Actor for Worker<T> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl<T: Task> Handler<Sent<T::Message>> for Worker<T> {
    type Result = Reply<T>;

    fn handle(&mut self, Sent(message): Sent<T::Message>, _: &mut Context<Self>) -> Reply<T> {
        if !T::WAITS {
            return Reply::Now(now(self.task().take(message)));
        }
        let mut task = self.0.take().expect("nothing is handled while the task is away");
        let handled = async move {
            let reply = task.take(message).await;
            (reply, task)
        };
        let give_back = |(reply, task), worker: &mut Self, _: &mut Context<Self>| {
            worker.0 = Some(task);
            reply
        };
        Reply::Later(AtomicResponse::new(Box::pin(handled.into_actor(self).map(give_back))))
    }
}

/// What a future that never waits comes to.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a task that says it never waits does wait"),
    }
}

/// A plain value, or an atomic response: the actor handles nothing else until it is there.
enum Reply<T: Task> {
    Now(u64),
    Later(AtomicResponse<Worker<T>, u64>),
}

impl<T: Task> MessageResponse<Worker<T>, Sent<T::Message>> for Reply<T> {
    fn handle(self, context: &mut Context<Worker<T>>, port: Option<OneshotSender<u64>>) {
        match self {
            Self::Now(reply) => {
                // A caller that is gone needs no reply, and one that only sends waits for none.
                let _ = port.map(|port| port.send(reply));
            }
            Self::Later(reply) => {
                let reply: AtomicResponse<_, _> = reply;
                MessageResponse::<Worker<T>, Sent<T::Message>>::handle(reply, context, port);
            }
        }
    }
}

/// Senders heed the bound of a mailbox, or they do not.
pub struct ActixActors<const BOUNDED: bool>;

impl<const BOUNDED: bool> System for ActixActors<BOUNDED> {
    type Stage = Arbiters;
    type To<T: Task> = Addresses<T, BOUNDED>;

    const BOUNDED: bool = BOUNDED;

    async fn start<T: Task>(
        stage: &Arbiters,
        workers: usize,
        make: impl Make<T>,
        route: Route,
    ) -> Result<Addresses<T, BOUNDED>, Failure> {
        let start = |place| {
            let task = make(place);
            let arbiter = stage.at(place).handle();
            Worker::start_in_arbiter(&arbiter, move |_| Worker(Some(task)))
        };
        Ok(Addresses { addresses: (0..workers).map(start).collect(), route })
    }
}

pub struct Addresses<T: Task, const BOUNDED: bool> {
    addresses: Vec<Addr<Worker<T>>>,
    route: Route,
}

impl<T: Task, const BOUNDED: bool> Clone for Addresses<T, BOUNDED> {
    fn clone(&self) -> Self {
        Self { addresses: self.addresses.clone(), route: self.route.clone() }
    }
}

impl<T: Task, const BOUNDED: bool> Addresses<T, BOUNDED> {
    fn pick(&mut self, key: u64) -> &Addr<Worker<T>> {
        &self.addresses[self.route.pick(key, self.addresses.len())]
    }
}

impl<T: Task, const BOUNDED: bool> Handle for Addresses<T, BOUNDED> {
    fn begin(&mut self, place: usize) {
        self.route.begin(place);
    }
}

impl<T: Task, const BOUNDED: bool> To<T::Message> for Addresses<T, BOUNDED> {
    async fn send(&mut self, message: T::Message) -> Result<(), Failure> {
        let to = self.pick(message.key());
        if !BOUNDED {
            to.do_send(Sent(message));
            return Ok(());
        }
        // To wait for room is to wait until this message has been handled:
        // actix knows no other way.
        match to.try_send(Sent(message)) {
            Ok(()) => Ok(()),
            Err(SendError::Full(message)) => Ok(to.send(message).await.map(drop)?),
            Err(SendError::Closed(_)) => Err("an actor has ended".into()),
        }
    }

    fn try_send(&mut self, message: T::Message) -> bool {
        self.pick(message.key()).try_send(Sent(message)).is_ok()
    }
}

impl<const BOUNDED: bool> Calls for ActixActors<BOUNDED> {
    type Caller = Addresses<Counting, BOUNDED>;

    async fn start_answering(
        stage: &Arbiters,
        workers: usize,
        make: impl Make<Counting>,
    ) -> Result<Addresses<Counting, BOUNDED>, Failure> {
        Self::start(stage, workers, make, Route::turns()).await
    }
}

impl<const BOUNDED: bool> Caller for Addresses<Counting, BOUNDED> {
    async fn call(&mut self, message: Message) -> Result<u64, Failure> {
        Ok(self.pick(message.key).send(Sent(message)).await?)
    }
}
