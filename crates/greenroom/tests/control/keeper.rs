//! A pool with its own keeper.

use std::{future::pending, sync::Arc, time::Duration};

use greenroom::{
    Address, CallError, Class, Envelope, ExitReason, NotAccepted, Overflow, PoolAdmin, ReplyPort,
    Restarts, SendError, SpawnError,
    advisor::Advisor,
    inspect::{Items, Value},
    keeper::PoolNotice,
    pool::AdminError,
    prelude::*,
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::timeout};

const SOON: Duration = Duration::from_secs(60);
const MILLI: Duration = Duration::from_millis(1);

/// The messages that workers and the keeper share.
#[derive(Debug)]
enum Tell {
    Nothing,
    Notice(PoolNotice),
    Sleep(u64),
    Hang,
    Panic,
    Fail,
    Add(usize),
    Remove(usize),
    Resize(usize),
    Enable(usize),
    Stop,
    Leave,
    Later,
    AnswerLater,
    Publish(u64),
}

impl From<PoolNotice> for Tell {
    fn from(notice: PoolNotice) -> Self {
        Self::Notice(notice)
    }
}

/// The name of the actor that answered, and a number.
type Said = (&'static str, usize);

struct Clerk;

impl Actor for Clerk {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn handle(&mut self, tell: Tell, cx: &mut Context<Self>) -> Result<Said, String> {
        match tell {
            Tell::Panic => panic!("on purpose"),
            Tell::Hang => pending().await,
            Tell::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            _ => {}
        }
        Ok(("clerk", cx.slot()))
    }
}

type SetUp = Box<dyn Fn(&PoolAdmin<Clerk>) -> Result<(), String> + Send + Sync>;

/// Does what the messages say.
struct Boss {
    office: PoolAdmin<Clerk>,
    set_up: SetUp,
    heard: mpsc::UnboundedSender<PoolNotice>,
    later: Vec<ReplyPort<Said, String>>,
    /// It ends when it gets such a notice.
    fears: fn(&PoolNotice) -> bool,
}

type Hears = mpsc::UnboundedReceiver<PoolNotice>;
type MakeBoss = Box<dyn FnOnce(PoolAdmin<Clerk>) -> Boss + Send>;

/// A boss, and the notices that it gets.
fn boss() -> (MakeBoss, Hears) {
    boss_with(|_| Ok(()), |_| false)
}

fn boss_with(
    set_up: impl Fn(&PoolAdmin<Clerk>) -> Result<(), String> + Send + Sync + 'static,
    fears: fn(&PoolNotice) -> bool,
) -> (MakeBoss, Hears) {
    let (heard, hears) = mpsc::unbounded_channel();
    let set_up: SetUp = Box::new(set_up);
    let make = move |office| Boss { office, set_up, heard, later: Vec::new(), fears };
    (Box::new(make), hears)
}

/// The result as text.
fn done<T>(result: Result<T, AdminError>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

/// Ends the keeper with an error.
fn fail(error: &str, cx: &mut Context<Boss>) -> Result<Said, String> {
    cx.exit(ExitReason::failed(error));
    Err(error.to_owned())
}

impl Actor for Boss {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), String> {
        tokio::task::yield_now().await;
        (self.set_up)(&self.office)
    }

    async fn handle(&mut self, tell: Tell, cx: &mut Context<Self>) -> Result<Said, String> {
        let change = match tell {
            Tell::Notice(notice) => {
                let feared = (self.fears)(&notice);
                let _ = self.heard.send(notice);
                return if feared { fail("all is lost", cx) } else { Ok(("boss", 0)) };
            }
            Tell::Add(workers) => self.office.add(workers),
            Tell::Remove(workers) => self.office.remove(workers),
            Tell::Resize(workers) => self.office.resize(workers),
            Tell::Enable(slot) => self.office.enable(slot),
            Tell::Panic => panic!("on purpose"),
            Tell::Fail => return fail("no licence", cx),
            Tell::Hang => pending().await,
            Tell::Sleep(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                return Ok(("boss", 0));
            }
            Tell::Publish(number) => {
                cx.publish("told", number).unwrap();
                return Ok(("boss", 0));
            }
            Tell::Stop => {
                let report = self.office.stop(Stop::Now).await;
                return Ok(("boss", report.left_over.len()));
            }
            Tell::Leave => {
                cx.stop();
                return Ok(("boss", 0));
            }
            Tell::AnswerLater => {
                let waiting = self.later.len();
                for port in self.later.drain(..) {
                    let _ = port.reply(("boss", waiting));
                }
                return Ok(("boss", waiting));
            }
            Tell::Nothing | Tell::Later => return Ok(("boss", self.office.stats().configured)),
        };
        change.map(|change| ("boss", change.size())).map_err(|error| error.to_string())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Tell, Said, String>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<Said>, String> {
        if matches!(delivery.message(), Some(Tell::Later)) {
            self.later.extend(delivery.take_reply_port());
            return Ok(Answer::Deferred);
        }
        self.handle(delivery.take(), cx).await.map(Answer::Reply)
    }
}

async fn spawn(workers: usize) -> (Pool<Clerk>, Pool<Boss>, Hears) {
    let (make, hears) = boss();
    let builder = Pool::new(|_| Clerk).workers(workers).bounds(0..=8).mailbox(2);
    let (pool, boss) = builder.keeper(make).spawn().await.unwrap();
    (pool, boss, hears)
}

type Told = Result<usize, CallError<String>>;

async fn command(boss: &Address<Tell, Said, String>, tell: Tell) -> Told {
    let said = timeout(SOON, boss.call(tell)).await.expect("it is answered");
    said.map_err(CallError::without_message).map(|(who, number)| {
        assert_eq!(who, "boss");
        number
    })
}

/// The next notice, which must come soon.
async fn next(hears: &mut Hears) -> String {
    match timeout(SOON, hears.recv()).await.expect("there is another notice") {
        Some(PoolNotice::WorkerUp { slot }) => format!("up {slot}"),
        Some(PoolNotice::WorkerDown { slot, reason }) => format!("down {slot}: {reason}"),
        Some(PoolNotice::Saturated) => "saturated".to_owned(),
        Some(PoolNotice::Stopped { reason }) => format!("stopped: {reason}"),
        Some(notice) => format!("{notice:?}"),
        None => "gone".to_owned(),
    }
}

/// Waits until every task of the runtime except the test has ended.
async fn nothing_runs() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let gone = async {
        while alive() > 0 {
            tokio::time::sleep(MILLI).await;
        }
    };
    assert!(timeout(SOON, gone).await.is_ok(), "{} tasks are left", alive());
}

fn is_failure(reason: &ExitReason, of: &str) -> bool {
    matches!(reason, ExitReason::Failed { error } if error.to_string() == of)
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_adds_removes_and_resizes_by_command() {
    let (pool, boss, _hears) = spawn(2).await;
    assert_eq!(command(&boss, Tell::Add(3)).await, Ok(5));
    assert_eq!(command(&boss, Tell::Remove(1)).await, Ok(4));
    assert_eq!(command(&boss, Tell::Resize(7)).await, Ok(7));
    assert_eq!(pool.stats().configured, 7);
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_enables_a_slot_that_was_given_up() {
    let (make, mut hears) = boss();
    let none = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Clerk).workers(1).restarts(none);
    let (pool, boss) = pool.keeper(make).spawn().await.unwrap();
    assert_eq!(next(&mut hears).await, "up 0");
    assert!(matches!(pool.call(Tell::Panic).await, Err(CallError::Panicked(_))));
    assert_eq!(next(&mut hears).await, "down 0: panicked: on purpose");
    assert_eq!(pool.call(Tell::Nothing).await, Err(SendError::NoWorkers(Tell::Nothing).into()));
    assert_eq!(command(&boss, Tell::Enable(0)).await, Ok(1));
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(pool.call(Tell::Nothing).await, Ok(("clerk", 0)));
}

#[tokio::test(start_paused = true)]
async fn p14_started_sets_options_of_the_pool_before_there_is_a_worker() {
    let set_up = |office: &PoolAdmin<Clerk>| -> Result<(), String> {
        assert_eq!((office.stats().live, office.stats().configured), (0, 6));
        done(office.resize(2))?;
        done(office.set_capacity(1))
    };
    let (make, _hears) = boss_with(set_up, |_| false);
    let pool = Pool::new(|_| Clerk).workers(6).overflow(Overflow::Reject);
    let (pool, _boss) = pool.keeper(make).spawn().await.unwrap();
    pool.ready(2, SOON).await.unwrap();
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.live, stats.capacity), (2, 2, 1));
    let hang = || pool.send(Tell::Hang);
    while hang().await.is_ok() {
        tokio::time::sleep(MILLI).await;
    }
    assert_eq!(hang().await.unwrap_err().without_message(), NotAccepted::Full);
}

#[tokio::test(start_paused = true)]
async fn p14_started_may_use_addresses_of_the_pool_and_let_them_go() {
    let set_up = |office: &PoolAdmin<Clerk>| -> Result<(), String> {
        done(office.add(1))?;
        drop((office.workers(), office.dead_letters()));
        Ok(())
    };
    let (make, _hears) = boss_with(set_up, |_| false);
    let (pool, _boss) = Pool::new(|_| Clerk).workers(1).keeper(make).spawn().await.unwrap();
    tokio::time::sleep(MILLI).await;
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_begins_with_workers_that_started_adds_and_takes_away() {
    for workers in [1, 3, 8] {
        let (make, _hears) = boss_with(move |office| done(office.resize(workers)), |_| false);
        let pool = Pool::new(|_| Clerk).workers(3);
        let (pool, _boss) = pool.keeper(make).spawn().await.unwrap();
        pool.ready(workers, SOON).await.unwrap();
        assert_eq!((pool.stats().configured, pool.stats().live), (workers, workers));
        assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
        pool.stop(Stop::Now).await;
        nothing_runs().await;
    }
}

#[tokio::test(start_paused = true)]
async fn p14_an_advisor_that_started_sets_is_the_one_that_advises() {
    let quick = Advisor { period: Duration::from_secs(1), ..Advisor::default() };
    let set_up = move |office: &PoolAdmin<Clerk>| done(office.set_advisor(quick));
    let (make, _hears) = boss_with(set_up, |_| false);
    let slow = Advisor { period: Duration::from_secs(3_600), ..Advisor::default() };
    let pool = Pool::new(|_| Clerk).workers(1).advise(slow).keeper(make);
    let (pool, _boss) = pool.spawn().await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(pool.admin().advice().is_some());
}

#[tokio::test(start_paused = true)]
async fn p14_options_that_started_sets_wrongly_fail_the_spawn() {
    let (make, _hears) = boss_with(|office| done(office.resize(9)), |_| false);
    let spawned = Pool::new(|_| Clerk).bounds(1..=8).keeper(make).spawn().await;
    let Err(SpawnError::KeeperFailed { reason, .. }) = spawned else {
        panic!("it is the keeper's error");
    };
    assert!(reason.contains("9 workers are outside of the pool's bounds"), "{reason}");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_started_fails_the_spawn_with_its_error_and_nothing_is_left_running() {
    let set_up = |office: &PoolAdmin<Clerk>| -> Result<(), String> {
        done(office.add(2))?;
        Err("no licence".to_owned())
    };
    let (make, mut hears) = boss_with(set_up, |_| false);
    let spawned = Pool::new(|_| Clerk).name("office").keeper(make).spawn().await;
    let Err(SpawnError::KeeperFailed { pool, reason }) = spawned else {
        panic!("it is the keeper's error");
    };
    assert_eq!(pool, "office");
    assert!(reason.ends_with("no licence"), "{reason}");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_panic_in_started_fails_the_spawn() {
    let (make, _hears) = boss_with(|_| panic!("on purpose"), |_| false);
    let spawned = Pool::new(|_| Clerk).keeper(make).spawn().await;
    let Err(SpawnError::KeeperFailed { reason, .. }) = spawned else {
        panic!("it is the keeper's panic");
    };
    assert!(reason.contains("on purpose"), "{reason}");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_whose_workers_cannot_be_started_ends() {
    let (make, mut hears) = boss();
    let pool = Pool::<Clerk>::try_new(|_| Err("no chairs")).keeper(make);
    let spawned = pool.keeper_takes_urgent().spawn().await;
    assert!(matches!(spawned, Err(SpawnError::NoWorkerStarted { .. })));
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_spawn_that_is_given_up_leaves_nothing_running() {
    let (make, mut hears) = boss();
    let pool = Pool::new(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Clerk
    });
    let mut spawning = Box::pin(pool.keeper(make).keeper_takes_urgent().spawn());
    for _ in 0..20 {
        tokio::select! {
            biased;
            _ = &mut spawning => panic!("its workers are slow"),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 4);
    drop(spawning);
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_an_error_that_ends_a_keeper_goes_to_the_caller_and_ends_the_pool() {
    let (pool, boss, mut hears) = spawn(2).await;
    let failed = CallError::Failed("no licence".to_owned());
    assert_eq!(command(&boss, Tell::Fail).await, Err(failed));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "no licence"), "{reason}");
    assert!(pool.try_send(Tell::Nothing).is_err());
    assert_eq!(command(&boss, Tell::Nothing).await, Err(SendError::Stopped(()).into()));
    while next(&mut hears).await != "gone" {}
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_an_error_that_is_only_returned_ends_nothing() {
    let (pool, boss, _hears) = spawn(2).await;
    assert!(matches!(command(&boss, Tell::Resize(9)).await, Err(CallError::Failed(_))));
    assert_eq!(command(&boss, Tell::Nothing).await, Ok(2));
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
}

#[tokio::test(start_paused = true)]
async fn p14_an_error_at_a_notice_ends_the_pool_with_that_reason() {
    let feared = |notice: &PoolNotice| matches!(notice, PoolNotice::WorkerDown { .. });
    let (make, _hears) = boss_with(|_| Ok(()), feared);
    let (pool, _boss) = Pool::new(|_| Clerk).keeper(make).spawn().await.unwrap();
    pool.send(Tell::Panic).await.unwrap();
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "all is lost"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_that_fails_while_its_workers_start_ends_the_pool() {
    let feared = |notice: &PoolNotice| matches!(notice, PoolNotice::WorkerUp { .. });
    let (make, mut hears) = boss_with(|_| Ok(()), feared);
    let slow = |slot| {
        std::thread::sleep(Duration::from_millis(10 * slot as u64));
        Clerk
    };
    let (pool, _boss) = Pool::new(slow).workers(4).keeper(make).spawn().await.unwrap();
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "all is lost"), "{reason}");
    assert!(next(&mut hears).await.starts_with("up "));
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_panic_goes_to_the_caller_and_ends_the_pool_with_that_reason() {
    let (pool, boss, _hears) = spawn(2).await;
    assert_eq!(command(&boss, Tell::Panic).await, Err(CallError::Panicked("on purpose".into())));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Panicked { message, .. } if message == "on purpose"));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_ends_with_a_keeper_that_leaves_or_is_killed() {
    let (pool, boss, _hears) = spawn(2).await;
    assert_eq!(command(&boss, Tell::Leave).await, Ok(0));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Normal));
    let (pool, boss, _hears) = spawn(2).await;
    boss.send(Tell::Hang).await.unwrap();
    boss.erase().exit(ExitReason::Killed);
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Killed));
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_of_one_ends_with_its_keeper_too() {
    let (make, _hears) = boss();
    let (pool, boss) = Pool::one(Clerk).keeper(make).spawn().await.unwrap();
    assert!(command(&boss, Tell::Fail).await.is_err());
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "no licence"), "{reason}");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_answers_calls_later() {
    let (_pool, boss, _hears) = spawn(1).await;
    let later = [Tell::Later, Tell::Later].map(|tell| {
        let boss = boss.address();
        tokio::spawn(async move { boss.call(tell).await })
    });
    assert_eq!(command(&boss, Tell::Nothing).await, Ok(1), "it goes on meanwhile");
    while command(&boss, Tell::AnswerLater).await == Ok(0) {}
    while later.iter().any(|call| !call.is_finished()) {
        assert!(command(&boss, Tell::AnswerLater).await.is_ok());
    }
    for call in later {
        assert_eq!(call.await.unwrap().unwrap().0, "boss");
    }
}

#[tokio::test(start_paused = true)]
async fn p14_what_a_keeper_publishes_is_seen_whatever_it_does() {
    let (_pool, boss, _hears) = spawn(1).await;
    assert_eq!(command(&boss, Tell::Publish(17)).await, Ok(0));
    boss.send(Tell::Hang).await.unwrap();
    let seen = boss.admin().inspect(&Items::All);
    assert_eq!(seen.workers[0].value("told"), Some(&Value::from(17_u64)));
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_hears_of_workers_that_come_and_go() {
    let (pool, boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(command(&boss, Tell::Add(1)).await, Ok(2));
    assert_eq!(next(&mut hears).await, "up 1");
    assert_eq!(command(&boss, Tell::Remove(1)).await, Ok(1));
    assert_eq!(next(&mut hears).await, "down 1: normal");
    pool.send(Tell::Panic).await.unwrap();
    assert_eq!(next(&mut hears).await, "down 0: panicked: on purpose");
    assert_eq!(next(&mut hears).await, "up 0");
    pool.stop(Stop::Now).await;
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_hears_that_its_pool_is_saturated_ten_times_a_second_at_most() {
    let (pool, _boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    while pool.try_send(Tell::Hang).is_ok() {
        tokio::time::sleep(MILLI).await;
    }
    assert_eq!(next(&mut hears).await, "saturated");
    for _ in 0..100 {
        assert!(pool.try_send(Tell::Hang).is_err());
    }
    tokio::time::sleep(50 * MILLI).await;
    assert!(hears.try_recv().is_err());
    tokio::time::sleep(50 * MILLI).await;
    assert!(pool.try_reserve().is_err());
    assert_eq!(next(&mut hears).await, "saturated");
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_hears_of_those_who_wait_to_reserve() {
    let (pool, _boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let mut held = Vec::new();
    while let Ok(Ok(permit)) = timeout(MILLI, pool.reserve()).await {
        held.push(permit);
    }
    assert_eq!(next(&mut hears).await, "saturated");
    tokio::time::sleep(100 * MILLI).await;
    assert!(timeout(MILLI, pool.reserve()).await.is_err());
    assert_eq!(next(&mut hears).await, "saturated");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn p14_commands_are_answered_while_the_pool_is_saturated_and_all_handlers_are_stuck() {
    let (pool, boss, _hears) = spawn(2).await;
    while timeout(MILLI, pool.send(Tell::Hang)).await.is_ok() {}
    let answer = timeout(10 * MILLI, boss.call(Tell::Resize(5))).await;
    assert_eq!(answer.unwrap(), Ok(("boss", 5)));
}

#[tokio::test(start_paused = true)]
async fn p14_notices_come_before_the_commands_that_wait() {
    let (pool, boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    boss.send(Tell::Sleep(1_000)).await.unwrap();
    let waiting = boss.address();
    let waiting = tokio::spawn(async move { command(&waiting, Tell::Nothing).await });
    tokio::time::sleep(MILLI).await;
    let later = pool.admin().add(2).unwrap();
    assert!(later.done(SOON).await.is_complete());
    assert_eq!(waiting.await.unwrap(), Ok(3));
    for _ in 0..2 {
        assert!(matches!(hears.try_recv(), Ok(PoolNotice::WorkerUp { slot: 1 | 2 })));
    }
}

#[tokio::test(start_paused = true)]
async fn p14_a_slow_keeper_holds_up_nobody_and_is_told_how_much_it_has_missed() {
    let (make, mut hears) = boss();
    let pool = Pool::new(|_| Clerk).quick_factory().workers(1).keeper(make);
    let (pool, boss) = pool.spawn().await.unwrap();
    assert_eq!(next(&mut hears).await, "up 0");
    boss.send(Tell::Sleep(10_000)).await.unwrap();
    for _ in 0..700 {
        let admin = pool.admin();
        assert_eq!(admin.add(1).unwrap().done(SOON).await.started.len(), 1);
        assert_eq!(admin.remove(1).unwrap().done(SOON).await.left.len(), 1);
    }
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
    let mut before = 0;
    let lost = loop {
        match timeout(SOON, hears.recv()).await.unwrap().unwrap() {
            PoolNotice::Lagged(lost) => break lost,
            _ => before += 1,
        }
    };
    assert_eq!(before + lost + 256, 2 * 700);
    for _ in 0..128 {
        assert_eq!(next(&mut hears).await, "up 1");
        assert_eq!(next(&mut hears).await, "down 1: normal");
    }
    assert!(hears.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn p14_urgent_messages_go_to_the_keeper_where_that_was_asked_for() {
    let (make, _hears) = boss();
    let pool = Pool::new(|_| Clerk).workers(1).mailbox(1).keeper(make);
    let (pool, _boss) = pool.keeper_takes_urgent().spawn().await.unwrap();
    while timeout(MILLI, pool.send(Tell::Hang)).await.is_ok() {}
    let urgent = || Envelope::urgent();
    assert_eq!(pool.call_with(Tell::Nothing, urgent()).await, Ok(("boss", 1)));
    assert_eq!(pool.stats().accepted, 2, "none of them is the workers'");
    pool.send_with(Tell::Sleep(100), urgent()).await.unwrap();
    tokio::time::sleep(MILLI).await;
    let refused = (0..=1_000).find_map(|_| pool.try_send_with(Tell::Nothing, urgent()).err());
    let full = refused.map(|refused| refused.without_message());
    assert_eq!(full, Some(NotAccepted::Full), "its mailbox is what bounds them");
    let waits = timeout(SOON, pool.call_with(Tell::Nothing, urgent()));
    assert_eq!(waits.await.unwrap(), Ok(("boss", 1)));
}

#[tokio::test(start_paused = true)]
async fn p14_urgent_messages_are_urgent_work_otherwise() {
    let (pool, _boss, _hears) = spawn(1).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    pool.send(Tell::Sleep(100)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    let calls = [Class::Normal, Class::Urgent].map(|class| {
        let (pool, order) = (pool.address(), order.clone());
        tokio::spawn(async move {
            let said = pool.call_with(Tell::Nothing, Envelope::new().class(class)).await;
            order.lock().push((class, said.unwrap().0));
        })
    });
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(*order.lock(), [(Class::Urgent, "clerk"), (Class::Normal, "clerk")]);
}

/// Reports which actor takes an urgent message that it sends to its pool when it starts.
struct Eager(mpsc::UnboundedSender<Option<Said>>);

impl Actor for Eager {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), String> {
        let (office, said) = (cx.address().unwrap(), self.0.clone());
        tokio::spawn(async move {
            let _ = said.send(office.call_with(Tell::Nothing, Envelope::urgent()).await.ok());
        });
        Ok(())
    }

    async fn handle(&mut self, _: Tell, cx: &mut Context<Self>) -> Result<Said, String> {
        Ok(("clerk", cx.slot()))
    }
}

/// Adds a worker, and starts slowly.
struct SlowToStart(PoolAdmin<Eager>);

impl Actor for SlowToStart {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), String> {
        done(self.0.add(1))?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    async fn handle(&mut self, _: Tell, _cx: &mut Context<Self>) -> Result<Said, String> {
        Ok(("boss", 0))
    }
}

#[tokio::test(start_paused = true)]
async fn p14_an_urgent_message_of_a_worker_that_started_adds_goes_to_the_keeper() {
    let (said, mut says) = mpsc::unbounded_channel();
    let pool = Pool::new(move |_| Eager(said.clone())).workers(1).keeper(SlowToStart);
    let (_pool, _boss) = pool.keeper_takes_urgent().spawn().await.unwrap();
    for _ in 0..2 {
        assert_eq!(says.recv().await, Some(Some(("boss", 0))));
    }
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_that_is_about_to_end_refuses_urgent_messages_as_its_pool_will() {
    let (make, _hears) = boss();
    let pool = Pool::new(|_| Clerk).keeper(make).keeper_takes_urgent();
    let (pool, boss) = pool.spawn().await.unwrap();
    boss.send(Tell::Sleep(1_000)).await.unwrap();
    let stopping = tokio::spawn(async move { boss.stop(Stop::within(SOON)).await });
    tokio::time::sleep(MILLI).await;
    let refused = pool.try_send_with(Tell::Nothing, Envelope::urgent()).unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    stopping.await.unwrap();
    pool.erase().ended().await;
}

#[test]
fn p14_a_pool_on_threads_of_its_own_ends_with_the_runtime_of_its_keeper() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (callers, other) = (runtime(), runtime());
    let (pool, _boss) = callers.block_on(async {
        let (make, _hears) = boss();
        Pool::new(|_| Clerk).dedicated_threads(1).keeper(make).spawn().await.unwrap()
    });
    drop(callers);
    other.block_on(async { timeout(SOON, pool.erase().ended()).await.unwrap() });
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_that_has_stopped_takes_no_urgent_message() {
    let (make, mut hears) = boss();
    let pool = Pool::new(|_| Clerk).keeper(make).keeper_takes_urgent();
    let (pool, boss) = pool.spawn().await.unwrap();
    pool.send(Tell::Sleep(1_000)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    let admin = pool.admin();
    let stopping = tokio::spawn(async move { admin.stop(Stop::Now).await });
    tokio::time::sleep(MILLI).await;
    let refused = pool.try_send_with(Tell::Nothing, Envelope::urgent()).unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    assert_eq!(command(&boss, Tell::Nothing).await, Ok(3), "its keeper still answers");
    stopping.await.unwrap();
    while next(&mut hears).await != "gone" {}
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_can_be_stopped_from_inside_a_command() {
    let (pool, boss, mut hears) = spawn(1).await;
    for _ in 0..2 {
        pool.send(Tell::Sleep(10)).await.unwrap();
    }
    tokio::time::sleep(MILLI).await;
    assert_eq!(command(&boss, Tell::Stop).await, Ok(1), "one was in hand, one is left over");
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

/// Stops its pool through the pool's own handle.
struct Closer(Arc<Mutex<Option<Pool<Clerk>>>>);

impl Actor for Closer {
    type Message = Tell;
    type Reply = ();
    type Error = String;

    async fn handle(&mut self, tell: Tell, _cx: &mut Context<Self>) -> Result<(), String> {
        if matches!(tell, Tell::Stop) {
            let pool = self.0.lock().take().unwrap();
            pool.stop(Stop::within(SOON)).await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_that_stops_its_pool_does_not_wait_for_itself() {
    let own: Arc<Mutex<Option<Pool<Clerk>>>> = Arc::default();
    let of_closer = own.clone();
    let pool = Pool::new(|_| Clerk).keeper(move |_| Closer(of_closer));
    let (pool, closer) = pool.spawn().await.unwrap();
    *own.lock() = Some(pool);
    assert_eq!(timeout(SOON / 30, closer.call(Tell::Stop)).await.unwrap(), Ok(()));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_stop_ends_the_keeper_last_even_a_stuck_one() {
    let (pool, boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let calls = [Tell::Hang, Tell::Nothing].map(|tell| {
        let boss = boss.address();
        tokio::spawn(async move { command(&boss, tell).await })
    });
    tokio::time::sleep(MILLI).await;
    let report = pool.stop(Stop::Now).await;
    assert!(report.wedged.is_empty());
    assert!(boss.erase().exit_reason().is_none(), "it ends after the pool");
    timeout(Duration::from_secs(6), boss.erase().ended()).await.unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(CallError::Stopped));
    }
    assert_eq!(next(&mut hears).await, "gone", "it was dropped before it could hear of the end");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_handles_what_it_has_before_it_ends_with_its_pool() {
    let (pool, boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let calls = [Tell::Sleep(1_000), Tell::Sleep(1_000), Tell::Nothing].map(|tell| {
        let boss = boss.address();
        tokio::spawn(async move { command(&boss, tell).await })
    });
    tokio::time::sleep(MILLI).await;
    pool.stop(Stop::Now).await;
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_without_addresses_the_pool_drains_and_stops_and_its_keeper_with_it() {
    let (pool, boss, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    for _ in 0..2 {
        pool.send(Tell::Sleep(10)).await.unwrap();
    }
    let any = pool.erase();
    drop(pool);
    assert_eq!(command(&boss, Tell::Nothing).await, Ok(1), "it is there to the end");
    let reason = timeout(SOON, any.ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Shutdown));
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
    assert_eq!(command(&boss, Tell::Nothing).await, Err(SendError::Stopped(()).into()));
}

#[tokio::test(start_paused = true)]
async fn p14_a_keeper_lives_as_long_as_its_pool_without_an_address_of_its_own() {
    let (pool, boss, mut hears) = spawn(1).await;
    drop(boss);
    tokio::time::sleep(SOON).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let change = pool.admin().add(1).unwrap();
    assert!(change.done(SOON).await.is_complete());
    assert_eq!(next(&mut hears).await, "up 1");
    pool.stop(Stop::Now).await;
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    nothing_runs().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_no_pool_outlives_its_addresses_on_several_threads() {
    for round in 0..50 {
        let (pool, boss, _hears) = spawn(2).await;
        let _ = pool.try_send(if round % 2 == 0 { Tell::Panic } else { Tell::Nothing });
        let _ = boss.try_send(Tell::Resize(round % 5));
        drop(pool);
    }
    nothing_runs().await;
}

/// A notice whose conversion may panic.
struct Fragile;

impl From<PoolNotice> for Fragile {
    fn from(notice: PoolNotice) -> Self {
        assert!(!matches!(notice, PoolNotice::WorkerUp { .. }), "on purpose");
        Self
    }
}

/// Counts its notices.
struct Counter(mpsc::UnboundedSender<()>);

impl Actor for Counter {
    type Message = Fragile;
    type Reply = ();
    type Error = String;

    async fn handle(&mut self, _: Fragile, _cx: &mut Context<Self>) -> Result<(), String> {
        self.0.send(()).map_err(|error| error.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn p14_a_notice_that_panics_on_its_way_to_the_keeper_is_the_only_one_to_be_lost() {
    let (heard, mut hears) = mpsc::unbounded_channel();
    let pool = Pool::new(|_| Clerk).workers(1).keeper(move |_| Counter(heard));
    let (pool, counter) = pool.spawn().await.unwrap();
    tokio::time::sleep(MILLI).await;
    assert!(hears.try_recv().is_err(), "the worker is up, and it was not told");
    assert!(counter.erase().is_alive());
    pool.stop(Stop::Now).await;
    assert_eq!(timeout(SOON, hears.recv()).await.unwrap(), Some(()));
    nothing_runs().await;
}

/// Takes a minute to start.
struct Late;

impl Actor for Late {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), String> {
        tokio::time::sleep(SOON).await;
        Ok(())
    }

    async fn handle(&mut self, _: Tell, _cx: &mut Context<Self>) -> Result<Said, String> {
        Ok(("late", 0))
    }
}

/// Has a message in hand from its start on, and never finishes it.
struct Stuck;

impl Actor for Stuck {
    type Message = Tell;
    type Reply = Said;
    type Error = String;

    async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), String> {
        let own = cx.address().ok_or("it has ended")?;
        own.try_send(Tell::Hang).map_err(|error| error.to_string())
    }

    async fn handle(&mut self, _: Tell, _cx: &mut Context<Self>) -> Result<Said, String> {
        pending().await
    }
}

/// The keeper's task was left behind with its message in hand.
#[tokio::test(start_paused = true)]
async fn p14_a_spawn_that_is_given_up_does_not_leave_a_busy_keeper_behind() {
    let mut spawning = Box::pin(Pool::new(|_| Late).keeper(|_office| Stuck).spawn());
    assert!(timeout(SOON / 2, &mut spawning).await.is_err(), "its workers are slow");
    drop(spawning);
    nothing_runs().await;
}
