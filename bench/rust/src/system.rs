//! What is compared: workers that can be started, and what senders and callers hold.

use std::future::Future;

use crate::{
    Failure,
    message::{Counters, Message},
    route::Route,
    stage::Stage,
    task::{Counting, Make, Task},
    work::Work,
};

/// Messages that may wait for one worker, where that can be bounded.
pub const MAILBOX: usize = 1_000;

pub trait System: 'static {
    type Stage: Stage;
    type To<T: Task>: To<T::Message>;

    /// Whether senders wait where a worker does not keep up. They are throttled from
    /// outside where they do not.
    const BOUNDED: bool;

    /// Starts workers; the route is for systems in which senders choose.
    fn start<T: Task>(
        stage: &Self::Stage,
        workers: usize,
        make: impl Make<T>,
        route: Route,
    ) -> impl Future<Output = Result<Self::To<T>, Failure>>;
}

/// What a sender or caller holds. Workers end when all of these are gone, or with their stage.
pub trait Handle: Clone + Send + 'static {
    /// Where there are turns, they go on from this worker, so that not all
    /// senders begin with the same.
    fn begin(&mut self, _place: usize) {}

    /// For systems that keep something beyond their stage.
    fn stop(self) -> impl Future<Output = ()> {
        async {}
    }
}

pub trait To<M>: Handle {
    /// Waits for room, where there is a bound.
    fn send(&mut self, message: M) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether there was room.
    fn try_send(&mut self, message: M) -> bool;
}

/// A system that replies.
pub trait Calls: System {
    type Caller: Caller;

    fn start_answering(
        stage: &Self::Stage,
        workers: usize,
        make: impl Make<Counting>,
    ) -> impl Future<Output = Result<Self::Caller, Failure>>;
}

pub trait Caller: Handle {
    fn call(&mut self, message: Message) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// Workers that count.
pub async fn counting<S: System>(
    stage: &S::Stage,
    counters: &Counters,
    workers: usize,
    work: Work,
    route: Route,
) -> Result<S::To<Counting>, Failure> {
    S::start(stage, workers, Counting::make(counters, work), route).await
}
