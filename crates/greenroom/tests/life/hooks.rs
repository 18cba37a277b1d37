//! A10, A11: hooks and exit reasons.

use std::{
    future::{Future, ready},
    sync::Arc,
};

use greenroom::{Actor, Context, ExitReason, Pool, RestartPolicy, SpawnError, Stop};

use crate::life::probe::{Do, HOUR, Journal, Probe, SECOND, alone, settle, until, up};

#[tokio::test(start_paused = true)]
async fn a10_each_hook_is_called_in_its_turn() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
    assert!(pool.call(Do::Panic).await.is_err());
    pool.call(Do::Nothing).await.unwrap();
    pool.stop(Stop::within(SECOND)).await;
    let panicked = "it restarting panicked: on purpose";
    assert_eq!(journal.all(), ["it started 0", panicked, "it started 1", "it stopped shut down"]);
}

#[tokio::test(start_paused = true)]
async fn a10_a_worker_that_leaves_is_told_that_it_ends_normally() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = up(Pool::new(move |_| probe.clone()).workers(2)).await;
    let leaving = pool.call(Do::with(|_| {})).await.unwrap();
    assert!(pool.admin().remove(2).unwrap().done(SECOND).await.is_complete());
    assert_eq!(journal.count("it stopped normal"), 2);
    assert!(matches!(leaving.exit_reason(), Some(ExitReason::Normal)));
}

#[tokio::test(start_paused = true)]
async fn a10_a_panic_while_the_pool_ends_is_followed_by_stopped_and_not_by_restarting() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
    pool.send(Do::PanicAfter(SECOND)).await.unwrap();
    settle().await;
    assert_eq!(pool.stop(Stop::Now).await.stats.dead_lettered, 1);
    assert_eq!(journal.all(), ["it started 0", "it stopped panicked: on purpose"]);
}

#[tokio::test(start_paused = true)]
async fn a10_a_start_that_fails_is_told_to_whoever_spawns_and_to_who_was_linked_in_it() {
    let journal = Journal::default();
    let other = alone(Probe::new("other", &journal)).await;
    let friend = other.erase();
    let probe = Probe {
        at_start: Some(Arc::new(move |cx| cx.link(&friend))),
        broken: Arc::new(true.into()),
        ..Probe::new("it", &journal)
    };
    let error = Pool::one(probe).name("it").spawn().await.unwrap_err();
    assert!(
        matches!(&error, SpawnError::NoWorkerStarted { reason, .. } if reason.contains("it is broken")),
        "{error}"
    );
    let reason = other.erase().ended().await;
    assert!(matches!(reason, ExitReason::Failed { .. }), "{reason}");
    assert_eq!(journal.count("other exited it failed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a10_a_spawn_that_is_given_up_ends_the_life_of_what_it_began() {
    let journal = Journal::default();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let probe = Probe {
        at_start: Some(Arc::new(move |cx| tell.send(cx.me()).unwrap())),
        broken: Arc::new(true.into()),
        ..Probe::new("it", &journal)
    };
    let spawn = Pool::new(move |_| probe.clone()).workers(1).spawn();
    assert!(spawn.await.is_err());
    let me = told.recv().await.unwrap();
    assert!(tokio::time::timeout(SECOND, me.ended()).await.unwrap().is_abnormal());
}

#[tokio::test(start_paused = true)]
async fn a10_a_slow_start_delays_nobody_else() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |slot| match slot {
        0 => Probe { slow_start: HOUR, ..probe.clone() },
        _ => probe.clone(),
    });
    let begun = tokio::time::Instant::now();
    let pool = pool.workers(2).spawn().await.unwrap();
    pool.call(Do::Nothing).await.unwrap();
    assert!(begun.elapsed() < SECOND);
    pool.stop(Stop::within(SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn a10_restarting_sees_the_state_that_the_handler_has_left() {
    struct Counter(u32, Journal);
    impl greenroom::Actor for Counter {
        type Message = ();
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, (): (), _cx: &mut greenroom::Context<Self>) -> Result<(), ()> {
            self.0 += 1;
            assert!(self.0 < 3, "too many");
            Ok(())
        }
        async fn restarting(&mut self, reason: &ExitReason) {
            self.1.note(format_args!("{} {reason}", self.0));
        }
    }
    let journal = Journal::default();
    let notes = journal.clone();
    let pool = Pool::new(move |_| Counter(0, notes.clone())).workers(1).spawn().await.unwrap();
    for _ in 0..3 {
        let _ = pool.call(()).await;
    }
    pool.call(()).await.unwrap();
    assert_eq!(journal.all(), ["3 panicked: too many"]);
}

#[tokio::test(start_paused = true)]
async fn a10_a_hook_that_panics_breaks_nothing() {
    for bad_hook in ["restarting", "stopped", "down", "exited"] {
        let journal = Journal::default();
        let watched = alone(Probe::new("watched", &journal)).await;
        let probe = Probe { bad_hook, ..Probe::new("it", &journal) };
        let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
        let friend = watched.erase();
        let me = pool.call(Do::with(move |cx| cx.monitor(&friend))).await.unwrap();
        watched.stop(Stop::Now).await;
        assert!(pool.call(Do::Panic).await.is_err());
        settle().await;
        me.exit(ExitReason::Normal);
        until(&pool, |stats| stats.live == 0 || stats.restarts == 2).await;
        until(&pool, |stats| bad_hook == "exited" || stats.live == 0).await;
        let report = pool.stop(Stop::within(SECOND)).await;
        assert!(report.stats.ledger_holds() && report.wedged.is_empty(), "{bad_hook}");
        let crashed = if matches!(bad_hook, "down" | "exited") { 2 } else { 1 };
        assert_eq!(report.stats.restarts, crashed, "{bad_hook} {:?}", journal.all());
    }
}

#[tokio::test(start_paused = true)]
async fn a10_a_start_that_panics_is_a_failed_start() {
    let journal = Journal::default();
    let probe = Probe { bad_hook: "started", ..Probe::new("it", &journal) };
    let error = Pool::one(probe).spawn().await.unwrap_err();
    assert!(error.to_string().contains("a bad hook"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a11_every_reason_is_produced() {
    let journal = Journal::default();
    let ends_by = |what: Do| {
        let probe = Probe::new("it", &journal);
        async move {
            let pool = alone(probe).await;
            pool.send(what).await.unwrap();
            pool.erase().ended().await
        }
    };
    assert!(matches!(ends_by(Do::with(|cx| cx.stop())).await, ExitReason::Normal));
    let failed = ends_by(Do::exit(ExitReason::failed("no disk"))).await;
    assert!(matches!(failed, ExitReason::Failed { error } if error.to_string() == "no disk"));
    let panicked = ends_by(Do::Panic).await;
    assert!(
        matches!(panicked, ExitReason::Panicked { message, location: None } if message == "on purpose")
    );
    let killed = alone(Probe::new("it", &journal)).await;
    killed.send(Do::Sleep(HOUR)).await.unwrap();
    killed.erase().exit(ExitReason::Killed);
    assert!(matches!(killed.erase().ended().await, ExitReason::Killed));
    let stopped = alone(Probe::new("it", &journal)).await;
    stopped.stop(Stop::Now).await;
    assert!(matches!(stopped.erase().ended().await, ExitReason::Shutdown));
    assert_eq!(journal.count("it stopped"), 4, "the one that was killed was dropped");
}

#[tokio::test(start_paused = true)]
async fn a11_an_end_that_was_asked_for_is_not_that_of_the_next_life() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
    let asks_and_panics = Do::with(|cx| {
        cx.stop();
        panic!("on purpose");
    });
    assert!(pool.call(asks_and_panics).await.is_err());
    settle().await;
    assert_eq!(pool.stats().live, 1);
    pool.call(Do::Nothing).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a10_an_actor_may_end_in_its_start() {
    let journal = Journal::default();
    let probe = Probe { at_start: Some(Arc::new(|cx| cx.stop())), ..Probe::new("it", &journal) };
    let pool = alone(probe).await;
    assert!(matches!(pool.erase().ended().await, ExitReason::Normal));
    assert!(pool.send(Do::Nothing).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a10_one_actor_stays_one_whatever_else_is_set() {
    let journal = Journal::default();
    let pool = Pool::one(Probe::new("it", &journal)).workers(3);
    let pool = pool.restart_policy(RestartPolicy::Permanent).spawn().await.unwrap();
    assert_eq!(pool.stats().configured, 1);
    assert!(pool.call(Do::Panic).await.is_err());
    assert!(pool.erase().ended().await.is_abnormal());
}

/// Its hooks panic when they are called, before they return a future.
struct Abrupt {
    starts: bool,
}

impl Actor for Abrupt {
    type Message = bool;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, panics: bool, _cx: &mut Context<Self>) -> Result<(), ()> {
        assert!(!panics, "on purpose");
        Ok(())
    }

    fn started(&mut self, _: &mut Context<Self>) -> impl Future<Output = Result<(), ()>> + Send {
        assert!(self.starts, "at once");
        ready(Ok(()))
    }

    fn restarting(&mut self, _: &ExitReason) -> impl Future<Output = ()> + Send {
        assert!(!self.starts, "at once");
        ready(())
    }

    fn stopped(&mut self, _: &ExitReason) -> impl Future<Output = ()> + Send {
        assert!(!self.starts, "at once");
        ready(())
    }
}

#[tokio::test(start_paused = true)]
async fn a10_a_hook_that_panics_before_there_is_a_future_breaks_nothing() {
    let pool = Pool::new(|_| Abrupt { starts: true }).workers(2).spawn().await.unwrap();
    for _ in 0..2 {
        assert!(pool.call(true).await.is_err());
        pool.call(false).await.unwrap();
    }
    let admin = pool.admin();
    assert!(admin.remove(1).unwrap().done(SECOND).await.is_complete(), "its slot is given up");
    pool.call(false).await.unwrap();
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(report.wedged.is_empty() && report.stats.ledger_holds());
    assert_eq!((report.stats.handled, report.stats.restarts), (3, 2));
    let error = Pool::new(|_| Abrupt { starts: false }).spawn().await.unwrap_err();
    assert!(error.to_string().contains("the `started` hook panicked: at once"), "{error}");
}
