//! Calls in place: a handler runs in its caller's task, and everything else is as it is with other
//! calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{Address, Answer, CallError, Delivery, PoolBuilder, Stop, WeakAddress, prelude::*};

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// What a handler is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Deed {
    Return,
    Sleep,
    Panic,
    Fail,
    /// Drops its reply port.
    Forget,
}

/// Answers with the task that it is polled in.
struct Where(Arc<AtomicU32>);

impl Actor for Where {
    type Message = Deed;
    type Reply = tokio::task::Id;
    type Error = &'static str;

    async fn handle(
        &mut self,
        deed: Deed,
        _: &mut Context<Self>,
    ) -> Result<tokio::task::Id, &'static str> {
        match deed {
            Deed::Return | Deed::Forget => {}
            Deed::Sleep => tokio::time::sleep(Duration::from_millis(10)).await,
            Deed::Panic => panic!("asked for"),
            Deed::Fail => return Err("asked for"),
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(tokio::task::id())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Deed, tokio::task::Id, &'static str>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<tokio::task::Id>, &'static str> {
        let deed = delivery.take();
        if deed == Deed::Forget {
            drop(delivery.take_reply_port());
            return Ok(Answer::Deferred);
        }
        self.handle(deed, cx).await.map(Answer::Reply)
    }
}

fn workers(workers: usize) -> (PoolBuilder<Where>, Arc<AtomicU32>) {
    let handled = Arc::new(AtomicU32::new(0));
    let of_workers = handled.clone();
    let pool = Pool::new(move |_| Where(of_workers.clone())).workers(workers);
    (pool.calls_in_place().quick_handlers(true), handled)
}

/// Calls until the handler has run in this very task: another worker may have to lie down before.
async fn until_run(pool: &Pool<Where>) {
    for _ in 0..10 {
        if pool.call(Deed::Return).await == Ok(tokio::task::id()) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("no call ran in its caller's task");
}

#[tokio::test]
async fn a_quick_handler_runs_in_its_callers_task_where_that_is_asked_for() {
    for in_place in [false, true] {
        let pool = Pool::new(|_| Where(Arc::default())).workers(2).quick_handlers(true);
        let pool = if in_place { pool.calls_in_place() } else { pool };
        let pool = pool.spawn().await.unwrap();
        let address = pool.address();
        let caller = async move {
            let mut own = 0;
            for _ in 0..1_000 {
                own += u32::from(address.call(Deed::Return).await == Ok(tokio::task::id()));
            }
            own
        };
        let own = tokio::spawn(caller).await.unwrap();
        // Not the first, before the workers have lain down, and not those that others had their
        // turn before.
        assert!(if in_place { own > 990 } else { own == 0 }, "{own} of 1,000");
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test]
async fn a_task_that_only_calls_lets_others_run() {
    let (pool, _) = workers(2);
    let pool = pool.spawn().await.unwrap();
    let calling = tokio::spawn(async move {
        loop {
            pool.call(Deed::Return).await.unwrap();
        }
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a06_a_call_in_place_ends_as_any_other_does() {
    tokio::spawn(async {
        let (pool, handled) = workers(2);
        let pool = pool.spawn().await.unwrap();
        until_run(&pool).await;
        let before = handled.load(Ordering::Relaxed);
        let slept = pool.call(Deed::Sleep).await;
        assert!(slept.is_ok_and(|task| task != tokio::task::id()), "it goes on in its own task");
        until_run(&pool).await;
        assert_eq!(pool.call(Deed::Fail).await, Err(CallError::Failed("asked for")));
        until_run(&pool).await;
        assert_eq!(pool.call(Deed::Panic).await, Err(CallError::Panicked("asked for".into())));
        until_run(&pool).await;
        assert_eq!(pool.call(Deed::Forget).await, Err(CallError::Dropped));
        until_run(&pool).await;
        assert!(handled.load(Ordering::Relaxed) > before);
        let stats = pool.stop(PATIENCE).await.stats;
        assert!(stats.ledger_holds());
        assert_eq!((stats.failed, stats.restarts), (1, 1));
    })
    .await
    .unwrap();
}

/// Calls another pool before it answers.
struct Asks(Address<Deed, tokio::task::Id, &'static str>);

impl Actor for Asks {
    type Message = ();
    type Reply = (tokio::task::Id, tokio::task::Id);
    type Error = CallError<&'static str, Deed>;

    async fn handle(
        &mut self,
        (): (),
        _: &mut Context<Self>,
    ) -> Result<(tokio::task::Id, tokio::task::Id), Self::Error> {
        let before = tokio::task::id();
        Ok((before, self.0.call(Deed::Return).await?))
    }
}

#[tokio::test]
async fn who_is_run_by_a_caller_runs_nobody() {
    tokio::spawn(async {
        let (pool, _) = workers(2);
        let inner = pool.spawn().await.unwrap();
        until_run(&inner).await;
        let to = inner.address();
        let outer = Pool::new(move |_| Asks(to.clone())).workers(2).calls_in_place();
        let outer = outer.quick_handlers(true);
        let outer = outer.spawn().await.unwrap();
        for _ in 0..1_000 {
            let (before, inside) = outer.call(()).await.unwrap();
            assert!(before != tokio::task::id() || inside != tokio::task::id());
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a12_a_worker_that_callers_run_is_killed_and_begins_again() {
    tokio::spawn(async {
        let (pool, _) = workers(1);
        let pool = pool.spawn().await.unwrap();
        until_run(&pool).await;
        let sleeping = pool.address();
        let sleeping = tokio::spawn(async move { sleeping.call(Deed::Sleep).await });
        tokio::task::yield_now().await;
        pool.admin().workers()[0].erase().exit(greenroom::ExitReason::Killed);
        assert!(sleeping.await.unwrap().is_err());
        until_run(&pool).await;
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    })
    .await
    .unwrap();
}

#[test]
fn a_caller_on_another_runtime_runs_nobody() {
    let own = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let (pool, _) = workers(2);
    let pool = own.block_on(pool.spawn()).unwrap();
    let address = pool.address();
    let there = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let calling = async move {
        for _ in 0..1_000 {
            assert_ne!(address.call(Deed::Return).await, Ok(tokio::task::id()));
        }
    };
    there.block_on(async { tokio::spawn(calling).await.unwrap() });
    own.block_on(pool.stop(PATIENCE));
}

#[test]
fn calls_in_place_from_many_tasks_have_one_outcome_each() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        for keyed in [false, true] {
            let (pool, handled) = workers(3);
            let pool = if keyed {
                pool.ordered_by(|deed: &Deed| *deed as u8).spawn().await.unwrap()
            } else {
                pool.spawn().await.unwrap()
            };
            let callers: Vec<_> = (0..8)
                .map(|caller| {
                    let to = pool.address();
                    tokio::spawn(async move {
                        for number in 0..2_000 {
                            let sleeps = number % 500 == caller;
                            let deed = if sleeps { Deed::Sleep } else { Deed::Return };
                            to.call(deed).await.unwrap();
                        }
                    })
                })
                .collect();
            for caller in callers {
                caller.await.unwrap();
            }
            assert_eq!(handled.load(Ordering::Relaxed), 16_000);
            let stats = pool.stop(PATIENCE).await.stats;
            assert_eq!((stats.handled, stats.ledger_holds()), (16_000, true));
        }
    });
}

/// Counts what it has handled; says whether it sleeps before.
struct Counts(Arc<AtomicU32>);

impl Actor for Counts {
    type Message = (u32, bool);
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (_, sleeps): (u32, bool), _: &mut Context<Self>) -> Result<(), ()> {
        if sleeps {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn k03_a_key_that_sleeps_holds_up_no_other_after_calls_in_place() {
    let handled = Arc::new(AtomicU32::new(0));
    let of_workers = handled.clone();
    let pool = Pool::new(move |_| Counts(of_workers.clone())).workers(2).capacity(1_000);
    let pool = pool.calls_in_place().quick_handlers(true).ordered_by(|job: &(u32, bool)| job.0);
    let pool = pool.spawn().await.unwrap();
    for key in 0..500 {
        pool.call((key, false)).await.unwrap();
    }
    pool.try_send((1_000, true)).unwrap();
    (0..199).for_each(|key| pool.try_send((key, false)).unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(handled.load(Ordering::Relaxed), 699, "all but the one that sleeps");
}

/// Sends a note to its own pool, where there is an address for it.
#[derive(Clone)]
struct Note(Option<WeakAddress<Note, (), ()>>);

struct Notes(Arc<AtomicU32>);

impl Actor for Notes {
    type Message = Note;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, Note(to): Note, _: &mut Context<Self>) -> Result<(), ()> {
        match to.and_then(|to| to.upgrade()) {
            Some(to) => drop(to.try_send(Note(None))),
            None => drop(self.0.fetch_add(1, Ordering::SeqCst)),
        }
        Ok(())
    }
}

/// The caller computes on after its reply: its thread is no place for what its handler has sent.
#[test]
fn p08_what_a_handler_sends_does_not_wait_for_the_caller_that_it_ran_in() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build().unwrap();
    let noted = Arc::new(AtomicU32::new(0));
    let of_workers = noted.clone();
    let computing = async move {
        let pool = Pool::new(move |_| Notes(of_workers.clone())).workers(3);
        let pool = pool.calls_in_place().quick_handlers(true).spawn().await.unwrap();
        let to = pool.address();
        for round in 1..=20 {
            pool.call(Note(Some(to.downgrade()))).await.unwrap();
            let since = std::time::Instant::now();
            while noted.load(Ordering::SeqCst) < round {
                assert!(since.elapsed() < Duration::from_secs(20), "it waits for its caller");
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    };
    runtime.block_on(async { tokio::spawn(computing).await.unwrap() });
}
