//! An actor's own address, and addresses in threads that cannot await (A20).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Duration,
};

use greenroom::{
    Actor, AddressOf, Answer, CallError, Context, Delivery, Layer, Pool, SendError, Stop,
    batch::{Batch, Batches},
    layer::{Next, around},
};
use tokio::sync::mpsc;

const SECOND: Duration = Duration::from_secs(1);

/// Counts down by sending to itself, and reports each number.
#[derive(Clone)]
struct Countdown(mpsc::UnboundedSender<u32>);

impl Actor for Countdown {
    type Message = u32;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, left: u32, cx: &mut Context<Self>) -> Result<u32, String> {
        self.0.send(left).map_err(|gone| gone.to_string())?;
        if let Some(next) = left.checked_sub(1) {
            let me: AddressOf<Self> = cx.address().ok_or("nobody holds an address any more")?;
            me.try_send(next).map_err(|error| error.to_string())?;
        }
        Ok(left)
    }
}

/// A layer that does nothing.
struct Through;

impl<A: Actor> Layer<A> for Through {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        next.run(delivery).await
    }
}

async fn told(seen: &mut mpsc::UnboundedReceiver<u32>) -> [Option<u32>; 3] {
    [seen.recv().await, seen.recv().await, seen.recv().await]
}

#[tokio::test(start_paused = true)]
async fn a20_an_actor_sends_to_itself_by_its_own_typed_address() {
    let (tell, mut seen) = mpsc::unbounded_channel();
    let countdown = Countdown(tell);
    let alone = Pool::one(countdown.clone()).spawn().await.unwrap();
    alone.send(2).await.unwrap();
    assert_eq!(told(&mut seen).await, [Some(2), Some(1), Some(0)]);
    let each = countdown.clone();
    let many = Pool::new(move |_| each.clone()).workers(3).spawn().await.unwrap();
    many.send(2).await.unwrap();
    assert_eq!(told(&mut seen).await, [Some(2), Some(1), Some(0)]);
    let layered = Pool::new(around(move |_| countdown.clone(), |_| Through));
    let layered = layered.workers(1).ordered_by(|_| 0).spawn().await.unwrap();
    layered.send(2).await.unwrap();
    assert_eq!(told(&mut seen).await, [Some(2), Some(1), Some(0)], "in a layer, by key");
}

/// Keeps its own address, strong or weak, and reports whether it has one.
struct Holder {
    tell: mpsc::UnboundedSender<bool>,
    strong: Option<AddressOf<Holder>>,
    weak: Option<greenroom::WeakAddress<bool, (), ()>>,
}

impl Actor for Holder {
    type Message = bool;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, strongly: bool, cx: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(SECOND).await;
        let me = cx.address();
        self.tell.send(me.is_some()).map_err(drop)?;
        self.weak = me.as_ref().map(AddressOf::<Self>::downgrade);
        self.strong = me.filter(|_| strongly);
        Ok(())
    }
}

async fn holder() -> (Pool<Holder>, mpsc::UnboundedReceiver<bool>) {
    let (tell, seen) = mpsc::unbounded_channel();
    let holder = move |_| Holder { tell: tell.clone(), strong: None, weak: None };
    (Pool::new(holder).workers(1).spawn().await.unwrap(), seen)
}

#[tokio::test(start_paused = true)]
async fn a20_a_weak_own_address_keeps_no_pool_and_a_strong_one_does() {
    for strongly in [false, true] {
        let (pool, mut seen) = holder().await;
        pool.send(strongly).await.unwrap();
        assert_eq!(seen.recv().await, Some(true));
        let any = pool.erase();
        drop(pool);
        tokio::time::sleep(SECOND).await;
        assert_eq!(any.is_alive(), strongly);
        any.stop(Stop::Now).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a20_a_pool_that_drains_has_no_address_any_more() {
    let (pool, mut seen) = holder().await;
    pool.send(true).await.unwrap();
    drop(pool);
    assert_eq!(seen.recv().await, Some(false));
}

/// Reports for each message of a batch whether the actor has its own address.
struct Together;

impl Actor for Together {
    type Message = Batch<u32>;
    type Reply = Vec<Result<bool, ()>>;
    type Error = ();

    async fn handle(
        &mut self,
        batch: Batch<u32>,
        cx: &mut Context<Self>,
    ) -> Result<Vec<Result<bool, ()>>, ()> {
        Ok(batch.iter().map(|_| Ok(cx.address().is_some())).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a20_the_actor_of_a_batched_pool_has_no_address_that_takes_batches() {
    let pool = Pool::batched(|_| Together, Batches::of(10)).spawn().await.unwrap();
    assert_eq!(pool.call(1).await, Ok(false));
}

/// Doubles the number, after a while.
struct Slow;

impl Actor for Slow {
    type Message = u32;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, number: u32, _: &mut Context<Self>) -> Result<u32, ()> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(2 * number)
    }
}

#[tokio::test]
async fn a20_threads_outside_of_the_runtime_send_and_call() {
    let pool = Pool::new(|_| Slow).workers(1).capacity(1).spawn().await.unwrap();
    let address = pool.address();
    let thread = thread::spawn(move || {
        for number in 0..5 {
            address.blocking_send(number).unwrap(); // waits for room
        }
        (address.blocking_call(21), address)
    });
    let (answer, address) = tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap();
    assert_eq!((answer, pool.stats().handled), (Ok(42), 6));
    pool.stop(Stop::Now).await;
    let late = tokio::task::spawn_blocking(move || {
        (address.blocking_send(1), address.blocking_call(2)) // allowed in such a thread
    });
    let (sent, called) = late.await.unwrap();
    assert!(matches!(sent, Err(SendError::Stopped(1))));
    assert!(matches!(called, Err(CallError::NotAccepted(SendError::Stopped(2)))));
}

#[test]
fn a20_a_pool_with_threads_of_its_own_is_called_without_any_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pool = Pool::new(|_| Slow).workers(1).dedicated_threads(1);
    let pool = runtime.block_on(pool.spawn()).unwrap();
    assert_eq!(pool.blocking_call(21), Ok(42));
    runtime.block_on(pool.stop(Stop::within(SECOND)));
}

#[tokio::test]
async fn a20_blocking_in_async_code_panics_and_says_why() {
    let pool = Pool::new(|_| Slow).workers(1).spawn().await.unwrap();
    let blocked = catch_unwind(AssertUnwindSafe(|| pool.blocking_call(1)));
    let why = blocked.unwrap_err();
    let why = why.downcast_ref::<&str>().map(|why| (*why).to_owned());
    assert!(why.is_some_and(|why| why.contains("from within a runtime")));
    assert_eq!(pool.stats().accepted, 0, "nothing was sent");
}
