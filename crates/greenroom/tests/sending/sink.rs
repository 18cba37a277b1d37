//! A pool as a sink (P29).

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context as Task, Poll, Waker},
    time::Duration,
};

use futures_util::{Sink, SinkExt, StreamExt, stream};
use greenroom::{Actor, Context, NotAccepted, Pool, Stop, service::PoolSink};

/// Records its messages.
struct Recorder(Arc<Mutex<Vec<u32>>>);

impl Actor for Recorder {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
        if number.is_multiple_of(7) {
            tokio::task::yield_now().await;
        }
        self.0.lock().unwrap().push(number);
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);

async fn recorder(capacity: usize) -> (Pool<Recorder>, Arc<Mutex<Vec<u32>>>) {
    let record = Arc::new(Mutex::new(Vec::new()));
    let noted = record.clone();
    let pool = Pool::new(move |_| Recorder(noted.clone())).workers(1).capacity(capacity);
    (pool.spawn().await.unwrap(), record)
}

/// The result of one poll for readiness, without the error's message.
fn poll_ready(sink: &mut PoolSink<u32, (), ()>) -> Poll<Result<(), NotAccepted>> {
    let ready = Pin::new(sink).poll_ready(&mut Task::from_waker(Waker::noop()));
    ready.map_err(|error| error.without_message())
}

fn is_full(pool: &Pool<Recorder>) -> bool {
    pool.try_reserve().is_err_and(|why| why == NotAccepted::Full)
}

#[tokio::test]
async fn p29_a_stream_forwarded_into_a_pool_of_one_keeps_its_order() {
    let (pool, record) = recorder(3).await;
    stream::iter(0..500).map(Ok).forward(pool.sink()).await.unwrap();
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(report.stats.handled, 500);
    assert!(record.lock().unwrap().iter().copied().eq(0..500));
}

#[tokio::test]
async fn p29_a_sink_waits_while_the_pool_is_full() {
    let (pool, _) = recorder(1).await;
    let held = pool.reserve().await.unwrap();
    let mut sink = pool.sink();
    assert_eq!(poll_ready(&mut sink), Poll::Pending);
    drop(held);
    assert_eq!(poll_ready(&mut sink), Poll::Ready(Ok(())));
    assert!(is_full(&pool), "the room is the sink's");
}

#[tokio::test]
async fn p29_a_closed_or_dropped_sink_gives_its_permit_back() {
    let (pool, _) = recorder(1).await;
    let mut sink = pool.sink();
    assert_eq!(poll_ready(&mut sink), Poll::Ready(Ok(())));
    assert!(poll_ready(&mut sink.clone()).is_pending(), "a clone has none");
    sink.close().await.unwrap();
    assert!(!is_full(&pool));
    assert_eq!(poll_ready(&mut sink), Poll::Ready(Ok(())));
    drop(sink);
    assert!(!is_full(&pool));
}

#[tokio::test(start_paused = true)]
async fn p29_a_flush_waits_for_nothing() {
    let (pool, record) = recorder(2).await;
    let mut sink = pool.sink();
    sink.feed(1).await.unwrap();
    sink.flush().await.unwrap();
    assert!(record.lock().unwrap().is_empty(), "accepted, and not yet handled");
    pool.stop(Stop::within(SECOND)).await;
    assert_eq!(*record.lock().unwrap(), [1]);
}

#[tokio::test]
async fn p29_a_sink_gives_back_what_a_stopped_pool_does_not_take() {
    let (pool, _) = recorder(1).await;
    let (mut ready, mut late) = (pool.sink(), pool.sink());
    assert_eq!(poll_ready(&mut ready), Poll::Ready(Ok(())));
    assert_eq!(poll_ready(&mut late), Poll::Pending);
    pool.stop(Stop::within(SECOND)).await;
    let error = Pin::new(&mut ready).start_send(9).unwrap_err();
    assert_eq!(
        (error.without_message(), error.into_message()),
        (NotAccepted::Stopped, Some(Some(9)))
    );
    assert_eq!(poll_ready(&mut late), Poll::Ready(Err(NotAccepted::Stopped)));
}
