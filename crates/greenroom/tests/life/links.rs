//! A12: links and monitors.

use greenroom::{CallError, ExitReason, Pool, RestartPolicy, Stop};

use crate::life::probe::{Do, HOUR, Journal, Probe, SECOND, alone, settle, until, up};

fn failed() -> ExitReason {
    ExitReason::failed("on purpose")
}

#[tokio::test(start_paused = true)]
async fn a12_an_abnormal_exit_stops_who_is_linked_either_way() {
    for first in [0, 1] {
        let journal = Journal::default();
        let both =
            [alone(Probe::new("one", &journal)).await, alone(Probe::new("two", &journal)).await];
        both[0].erase().link(&both[1].erase());
        both[first].send(Do::exit(failed())).await.unwrap();
        let reason = both[1 - first].erase().ended().await;
        assert_eq!(reason.to_string(), "failed: on purpose");
        assert_eq!(journal.count("one exited") + journal.count("two exited"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a12_who_traps_goes_on_and_a_normal_exit_stops_nobody() {
    let journal = Journal::default();
    let (trap, plain) =
        (alone(Probe::trap("trap", &journal)).await, alone(Probe::new("plain", &journal)).await);
    for reason in [failed(), ExitReason::Normal] {
        let other = alone(Probe::new("other", &journal)).await;
        other.erase().link(&trap.erase());
        if reason.is_normal() {
            other.erase().link(&plain.erase());
        }
        other.send(Do::exit(reason)).await.unwrap();
        other.erase().ended().await;
    }
    settle().await;
    assert!(trap.call(Do::Nothing).await.is_ok() && plain.call(Do::Nothing).await.is_ok());
    assert_eq!(journal.count("trap exited other"), 2);
    assert_eq!(journal.count("plain exited other normal"), 1);
}

#[tokio::test(start_paused = true)]
async fn a12_an_exit_signal_is_asked_about_and_killed_is_not() {
    let journal = Journal::default();
    let trap = alone(Probe::trap("trap", &journal)).await;
    for reason in [ExitReason::Normal, ExitReason::Shutdown, failed()] {
        trap.erase().exit(reason);
    }
    trap.call(Do::Nothing).await.unwrap();
    assert_eq!(journal.count("trap exited -"), 3);
    trap.erase().exit(ExitReason::Killed);
    assert!(matches!(trap.erase().ended().await, ExitReason::Killed));

    let plain = alone(Probe::new("plain", &journal)).await;
    plain.erase().exit(ExitReason::Normal);
    assert!(matches!(plain.erase().ended().await, ExitReason::Normal));
}

#[tokio::test(start_paused = true)]
async fn a12_a_killed_worker_drops_its_handler_and_its_message_is_a_dead_letter() {
    for consumes in [false, true] {
        let journal = Journal::default();
        let probe = Probe { consumes, ..Probe::trap("it", &journal) };
        let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
        let me = pool.call(Do::Nothing).await.unwrap();
        let call = pool.call(Do::Sleep(HOUR));
        let kill = async {
            settle().await;
            me.exit(ExitReason::Killed);
        };
        let begun = tokio::time::Instant::now();
        let (answer, ()) = tokio::join!(call, kill);
        assert_eq!(answer.unwrap_err(), CallError::Killed);
        assert!(begun.elapsed() < SECOND);
        pool.call(Do::Nothing).await.unwrap();
        assert_eq!(pool.stats().restarts, 1);
        let report = pool.stop(Stop::within(SECOND)).await;
        assert!(report.left_over.is_empty());
        assert_eq!(report.stats.dead_lettered, 1);
        assert!(report.stats.ledger_holds());
        assert_eq!(journal.all(), ["it started 0", "it started 1", "it stopped shut down"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a12_a_slot_is_not_lost_however_often_its_worker_is_killed() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let restarts = greenroom::Restarts { max: 1_000, ..Default::default() };
    let pool = Pool::new(move |_| probe.clone()).workers(1).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    let me = pool.call(Do::Nothing).await.unwrap();
    for yields in 0..8 {
        me.exit(ExitReason::Killed);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        me.exit(ExitReason::Killed);
    }
    assert!(tokio::time::timeout(HOUR, pool.call(Do::Nothing)).await.unwrap().is_ok());
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(report.wedged.is_empty() && report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a12_a_worker_that_leaves_can_be_killed() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(2).spawn().await.unwrap();
    let me = pool.call(Do::Nothing).await.unwrap();
    let worker = pool.admin().workers().into_iter().find(|worker| worker.address().erase() == me);
    worker.unwrap().address().send(Do::Sleep(HOUR)).await.unwrap();
    settle().await;
    let slot =
        pool.admin().workers().iter().find(|worker| worker.address().erase() == me).unwrap().slot();
    let change = pool.admin().remove_worker(slot).unwrap();
    me.exit(ExitReason::Killed);
    assert!(change.done(SECOND).await.is_complete());
    assert!(matches!(me.ended().await, ExitReason::Killed));
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!((report.left_over.len(), report.stats.dead_lettered), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a12_a_monitor_hears_of_each_end_once_also_of_one_that_is_gone() {
    let journal = Journal::default();
    let watch = alone(Probe::new("watch", &journal)).await;
    let others = [alone(Probe::new("a", &journal)).await, alone(Probe::new("b", &journal)).await];
    let gone = alone(Probe::new("gone", &journal)).await;
    gone.stop(Stop::Now).await;
    let all = [others[0].erase(), others[1].erase(), gone.erase(), others[0].erase()];
    watch.call(Do::with(move |cx| all.iter().for_each(|other| cx.monitor(other)))).await.unwrap();
    others[0].send(Do::Panic).await.unwrap();
    others[1].stop(Stop::Now).await;
    settle().await;
    for (name, reason) in [("a", "panicked: on purpose"), ("b", "shut down"), ("gone", "shut down")]
    {
        assert_eq!(journal.count(&format!("watch down {name} {reason}")), 1, "{:?}", journal.all());
    }
    assert!(watch.call(Do::Nothing).await.is_ok(), "a monitor is not a link");
}

#[tokio::test(start_paused = true)]
async fn a12_a_tie_that_was_taken_away_tells_nothing() {
    let journal = Journal::default();
    let (one, two) =
        (alone(Probe::new("one", &journal)).await, alone(Probe::new("two", &journal)).await);
    let friend = two.erase();
    let ties = Do::with(move |cx| {
        cx.link(&friend);
        cx.monitor(&friend);
        cx.unlink(&friend);
        cx.demonitor(&friend);
    });
    one.call(ties).await.unwrap();
    two.send(Do::Panic).await.unwrap();
    two.erase().ended().await;
    one.call(Do::Nothing).await.unwrap();
    assert_eq!(journal.count("one down") + journal.count("one exited"), 0);
}

#[tokio::test(start_paused = true)]
async fn a12_who_is_linked_to_one_that_has_ended_hears_of_it_at_once() {
    let journal = Journal::default();
    let ended = alone(Probe::new("ended", &journal)).await;
    ended.send(Do::Panic).await.unwrap();
    ended.erase().ended().await;
    let (one, two) =
        (alone(Probe::new("one", &journal)).await, alone(Probe::new("two", &journal)).await);
    one.erase().link(&ended.erase());
    ended.erase().link(&two.erase());
    assert!(one.erase().ended().await.is_abnormal() && two.erase().ended().await.is_abnormal());
}

#[tokio::test(start_paused = true)]
async fn a12_no_exit_is_lost_of_one_that_ends_in_its_start() {
    let journal = Journal::default();
    let watch = alone(Probe::new("watch", &journal)).await;
    let watcher = watch.erase();
    let probe = Probe {
        at_start: Some(std::sync::Arc::new(move |cx| {
            cx.link(&watcher);
            cx.exit(failed());
        })),
        ..Probe::new("brief", &journal)
    };
    let _brief = alone(probe).await;
    assert!(watch.erase().ended().await.is_abnormal());
    assert_eq!(journal.count("watch exited brief"), 1);
}

#[tokio::test(start_paused = true)]
async fn a12_workers_of_pools_are_linked_each_for_itself() {
    let journal = Journal::default();
    let probe = Probe::new("worker", &journal);
    let temporary = Pool::new(move |_| probe.clone()).name("pool").workers(2);
    let pool = temporary.restart_policy(RestartPolicy::Temporary).spawn().await.unwrap();
    let worker = pool.admin().workers()[1].address().clone();
    let (other, watch) =
        (alone(Probe::new("other", &journal)).await, alone(Probe::new("watch", &journal)).await);
    worker.erase().link(&other.erase());
    let watched = worker.erase();
    watch.call(Do::with(move |cx| cx.monitor(&watched))).await.unwrap();
    worker.send(Do::Panic).await.unwrap();
    assert!(other.erase().ended().await.is_abnormal(), "a worker that is not restarted has ended");
    settle().await;
    assert_eq!(journal.count("watch down pool-1 panicked"), 1);
    assert!(matches!(worker.erase().exit_reason(), Some(ExitReason::Panicked { .. })));
    assert!(pool.call(Do::Nothing).await.is_ok() && pool.erase().is_alive());
}

#[tokio::test(start_paused = true)]
async fn a12_a_restart_is_no_end() {
    let journal = Journal::default();
    let probe = Probe::new("worker", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(1).spawn().await.unwrap();
    let me = pool.call(Do::Nothing).await.unwrap();
    let other = alone(Probe::new("other", &journal)).await;
    me.link(&other.erase());
    assert!(pool.call(Do::Panic).await.is_err());
    pool.call(Do::Nothing).await.unwrap();
    assert_eq!((me.exit_reason().is_none(), journal.count("other exited")), (true, 0));
    other.send(Do::Panic).await.unwrap();
    until(&pool, |stats| stats.restarts == 2).await;
    assert_eq!(journal.count("worker exited other"), 1, "the link has outlived the restart");
}

#[tokio::test(start_paused = true)]
async fn a12_a_slot_that_is_enabled_again_has_another_life() {
    let journal = Journal::default();
    let probe = Probe::new("worker", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(2);
    let pool = pool.restart_policy(RestartPolicy::Temporary).spawn().await.unwrap();
    let before = pool.admin().workers()[0].address().clone();
    before.send(Do::Panic).await.unwrap();
    before.erase().ended().await;
    assert!(pool.admin().enable(0).unwrap().done(SECOND).await.is_complete());
    let after = pool.admin().workers()[0].address().clone();
    assert!(after.erase() != before.erase() && after.erase().exit_reason().is_none());
    assert!(after.call(Do::Nothing).await.is_ok());
    assert!(before.send(Do::Nothing).await.is_err());
    before.erase().exit(ExitReason::Killed);
    assert!(after.call(Do::Nothing).await.is_ok(), "it was not meant");
    assert_eq!(pool.stats().restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a12_one_may_be_linked_to_itself_and_in_a_circle() {
    let journal = Journal::default();
    let mut circle = Vec::new();
    for _ in 0..5 {
        circle.push(alone(Probe::new("it", &journal)).await);
    }
    for (one, next) in circle.iter().zip(circle.iter().cycle().skip(1)) {
        one.erase().link(&one.erase());
        one.erase().link(&next.erase());
    }
    circle[2].send(Do::Panic).await.unwrap();
    for one in &circle {
        assert!(one.erase().ended().await.is_abnormal());
    }
    assert_eq!(journal.count("it stopped"), 5);
}

#[tokio::test(start_paused = true)]
async fn a12_a_worker_is_told_of_a_link_to_its_own_pool() {
    let journal = Journal::default();
    let probe = Probe::new("worker", &journal);
    let pool = up(Pool::new(move |_| probe.clone()).workers(2)).await;
    let me = pool.call(Do::Nothing).await.unwrap();
    me.link(&pool.erase());
    pool.erase().exit(failed());
    assert!(pool.erase().ended().await.is_abnormal() && me.ended().await.is_abnormal());
    assert_eq!(journal.count("worker stopped failed"), 2);
}
