//! The places where pools are spawned, stopped and called: on runtimes with time, without time, and
//! on none.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context as Task, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use greenroom::{
    Backoff, CallError, Change, SpawnError, Supervisor,
    prelude::*,
    supervisor::{Strategy, SupervisorError},
};
use tokio::runtime::{Builder, Runtime};

struct Clerk;

impl Actor for Clerk {
    type Message = u64;
    type Reply = u64;
    type Error = Infallible;

    async fn handle(&mut self, ms: u64, _cx: &mut Context<Self>) -> Result<u64, Infallible> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(ms)
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future without a runtime.
fn alone<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Task::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn timeless() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.worker_threads(1).build().unwrap())
}

#[test]
fn a_pool_is_not_spawned_where_there_is_no_time() {
    for runtime in timeless() {
        runtime.block_on(async {
            for _ in 0..2 {
                let spawned = Pool::new(|_| Clerk).name("clerks").spawn().await;
                let error = spawned.unwrap_err();
                assert!(matches!(error, SpawnError::NoTime { .. }), "{error}");
                let said = error.to_string();
                assert!(said.contains("pool clerks") && said.contains("enable_time"), "{said}");
            }
            let one = Pool::one(Clerk).spawn().await.unwrap_err();
            assert!(matches!(one, SpawnError::NoTime { .. }), "{one}");
            let child = Pool::new(|_| Clerk).supervised().unwrap_err();
            assert!(matches!(child, SpawnError::NoTime { .. }), "{child}");
            let supervisor = Supervisor::new(Strategy::OneForOne).spawn().await.unwrap_err();
            assert!(matches!(supervisor, SupervisorError::NoTime), "{supervisor}");
        });
    }
}

#[test]
fn a_pool_is_not_spawned_outside_of_a_runtime() {
    let error = alone(Pool::new(|_| Clerk).name("clerks").spawn()).unwrap_err();
    assert!(matches!(&error, SpawnError::NoRuntime { pool } if pool == "clerks"), "{error}");
    assert!(Pool::new(|_| Clerk).supervised().is_err());
    let supervisor = alone(Supervisor::new(Strategy::OneForOne).spawn()).unwrap_err();
    assert!(matches!(supervisor, SupervisorError::NoRuntime), "{supervisor}");
}

/// Calls with limits, and the waits of retries and stops, from a place without time.
async fn uses_a_pool_with_threads_of_its_own() {
    let retries = Backoff::new(Duration::from_millis(1), Duration::from_millis(1));
    let pool = Pool::new(|_| Clerk).workers(2).dedicated_threads(1).retry(2, retries);
    let pool = pool.spawn().await.unwrap();
    assert_eq!(pool.call_timeout(1, Duration::from_secs(60)).await, Ok(1));
    let late = pool.call_timeout(60_000, Duration::from_millis(1)).await;
    assert_eq!(late, Err(CallError::TimedOut));
    pool.send_timeout(0, Duration::from_secs(60)).await.unwrap();
    let change = pool.admin().resize(3).unwrap();
    assert!(change.done(Duration::from_secs(60)).await.is_complete());
    let report = pool.stop(Stop::within(Duration::from_millis(1))).await;
    assert!(report.wedged.is_empty() && report.stats.ledger_holds());
}

#[test]
fn a_pool_with_threads_of_its_own_is_called_and_stopped_where_there_is_no_time() {
    alone(uses_a_pool_with_threads_of_its_own());
    for runtime in timeless() {
        runtime.block_on(uses_a_pool_with_threads_of_its_own());
    }
}

#[test]
fn a_pool_is_stopped_from_a_runtime_without_time() {
    let home = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    for elsewhere in timeless() {
        let pool = home.block_on(Pool::new(|_| Clerk).spawn()).unwrap();
        let report = elsewhere.block_on(pool.stop(Stop::within(Duration::from_secs(60))));
        assert!(report.left_over.is_empty());
    }
    let pool = home.block_on(Pool::new(|_| Clerk).spawn()).unwrap();
    alone(pool.stop(Stop::Now));
}

/// Removes the other one when it goes.
struct Remover {
    slot: usize,
    pool: Arc<OnceLock<Pool<Self>>>,
    changes: Arc<Mutex<Vec<Change>>>,
}

impl Actor for Remover {
    type Message = ();
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.get() {
            let change = pool.admin().remove_worker(1 - self.slot).unwrap();
            self.changes.lock().unwrap().push(change);
        }
    }
}

/// The second one to go removes one whose task has already gone: nothing is left to report that.
#[test]
fn p13_a_change_of_a_pool_whose_runtime_goes_meanwhile_is_not_waited_for_to_its_deadline() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (pool, changes) = (Arc::<OnceLock<_>>::default(), Arc::<Mutex<Vec<_>>>::default());
    let parts = (pool.clone(), changes.clone());
    let build = move |slot| Remover { slot, pool: parts.0.clone(), changes: parts.1.clone() };
    runtime.block_on(async {
        let spawned = Pool::new(build).workers(2).spawn().await.unwrap();
        spawned.ready(2, Duration::from_secs(60)).await.unwrap();
        assert!(pool.set(spawned).is_ok());
    });
    drop(runtime);
    let changes = std::mem::take(&mut *changes.lock().unwrap());
    assert_eq!(changes.len(), 2);
    let ours = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    ours.block_on(async {
        for change in changes {
            let done = change.done(Duration::from_secs(3600));
            assert!(tokio::time::timeout(Duration::from_secs(60), done).await.is_ok());
        }
    });
}
