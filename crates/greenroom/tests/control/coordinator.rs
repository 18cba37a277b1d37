//! A pool with an actor of its own.

use std::{error::Error, fmt, future::pending, sync::Arc, time::Duration};

use greenroom::{
    CallError, Class, Envelope, ExitReason, NotAccepted, Overflow, PoolAdmin, ReplyPort, Restarts,
    SendError, SpawnError,
    coordinator::{CoordinatedPool, Coordinator, PoolNotice, Setup},
    inspect::{Items, Value},
    pool::AdminError,
    prelude::*,
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::timeout};

const SOON: Duration = Duration::from_secs(60);

/// What workers and the coordinator are told alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tell {
    Nothing,
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

#[derive(Debug, Clone, PartialEq, Eq)]
struct Trouble(String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Trouble {}

impl From<AdminError> for Trouble {
    fn from(error: AdminError) -> Self {
        Self(error.to_string())
    }
}

/// Who has answered, and a number.
type Said = (&'static str, usize);

struct Clerk;

impl Actor for Clerk {
    type Message = Tell;
    type Reply = Said;
    type Error = Trouble;

    async fn handle(&mut self, tell: Tell, cx: &mut Context<Self>) -> Result<Said, Trouble> {
        match tell {
            Tell::Panic => panic!("on purpose"),
            Tell::Hang => pending().await,
            Tell::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            _ => {}
        }
        Ok(("clerk", cx.slot()))
    }
}

type SetUp = Box<dyn FnMut(&mut Setup<Clerk>) -> Result<(), Trouble> + Send>;

/// Does as it is told.
struct Boss {
    set_up: SetUp,
    heard: mpsc::UnboundedSender<PoolNotice>,
    later: Vec<ReplyPort<Said, Trouble>>,
    /// It fails when it hears this.
    fears: fn(&PoolNotice) -> bool,
}

impl Boss {
    fn new() -> (Self, mpsc::UnboundedReceiver<PoolNotice>) {
        Self::with(|_| Ok(()))
    }

    fn with(
        set_up: impl FnMut(&mut Setup<Clerk>) -> Result<(), Trouble> + Send + 'static,
    ) -> (Self, mpsc::UnboundedReceiver<PoolNotice>) {
        let (heard, hears) = mpsc::unbounded_channel();
        (Self { set_up: Box::new(set_up), heard, later: Vec::new(), fears: |_| false }, hears)
    }
}

impl Coordinator<Clerk> for Boss {
    type Command = Tell;
    type Reply = Said;
    type Error = Trouble;

    async fn started(&mut self, setup: &mut Setup<Clerk>) -> Result<(), Trouble> {
        tokio::task::yield_now().await;
        (self.set_up)(setup)
    }

    async fn command(
        &mut self,
        tell: Tell,
        pool: &PoolAdmin<Clerk>,
        cx: &mut Context<Self>,
    ) -> Result<Said, Trouble> {
        let change = match tell {
            Tell::Add(workers) => pool.add(workers)?,
            Tell::Remove(workers) => pool.remove(workers)?,
            Tell::Resize(workers) => pool.resize(workers)?,
            Tell::Enable(slot) => pool.enable(slot)?,
            Tell::Panic => panic!("on purpose"),
            Tell::Fail => return Err(Trouble("no licence".into())),
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
                let report = pool.stop(Stop::Now).await;
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
            _ => return Ok(("boss", pool.stats().configured)),
        };
        Ok(("boss", change.size()))
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Tell, Said, Trouble>,
        pool: &PoolAdmin<Clerk>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<Said>, Trouble> {
        if delivery.message() == Some(&Tell::Later) {
            self.later.extend(delivery.take_reply_port());
            return Ok(Answer::Deferred);
        }
        self.command(delivery.take(), pool, cx).await.map(Answer::Reply)
    }

    async fn notice(
        &mut self,
        notice: PoolNotice,
        _pool: &PoolAdmin<Clerk>,
        _cx: &mut Context<Self>,
    ) -> Result<(), Trouble> {
        let feared = (self.fears)(&notice);
        let _ = self.heard.send(notice);
        if feared { Err(Trouble("all is lost".into())) } else { Ok(()) }
    }
}

type Coordinated = CoordinatedPool<Clerk, Boss>;
type Hears = mpsc::UnboundedReceiver<PoolNotice>;

async fn spawn(workers: usize) -> (Coordinated, Hears) {
    let (boss, hears) = Boss::new();
    let builder = Pool::new(|_| Clerk).workers(workers).bounds(0..=8).mailbox(2);
    (builder.coordinator(boss).spawn().await.unwrap(), hears)
}

async fn told(pool: &Coordinated, tell: Tell) -> Result<usize, CallError<Trouble>> {
    let said = timeout(SOON, pool.commands().call(tell)).await.expect("it is answered");
    said.map_err(CallError::without_message).map(|(who, number)| {
        assert_eq!(who, "boss");
        number
    })
}

/// The next notice, shortly.
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

/// Waits until every task of the runtime but the test has ended.
async fn nothing_runs() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let gone = async {
        while alive() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(SOON, gone).await.is_ok(), "{} tasks are left", alive());
}

fn is_failure(reason: &ExitReason, of: &str) -> bool {
    let ExitReason::Failed { error } = reason else { return false };
    error.downcast_ref::<Trouble>().is_some_and(|trouble| trouble.0 == of)
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_adds_removes_and_resizes_by_command() {
    let (pool, _hears) = spawn(2).await;
    assert_eq!(told(&pool, Tell::Add(3)).await, Ok(5));
    assert_eq!(told(&pool, Tell::Remove(1)).await, Ok(4));
    assert_eq!(told(&pool, Tell::Resize(7)).await, Ok(7));
    assert_eq!(pool.stats().configured, 7);
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_enables_a_slot_that_was_given_up() {
    let (boss, mut hears) = Boss::new();
    let none = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Clerk).workers(1).restarts(none);
    let pool = pool.coordinator(boss).spawn().await.unwrap();
    assert_eq!(next(&mut hears).await, "up 0");
    assert!(matches!(pool.call(Tell::Panic).await, Err(CallError::Panicked(_))));
    assert_eq!(next(&mut hears).await, "down 0: panicked: on purpose");
    assert_eq!(pool.call(Tell::Nothing).await, Err(SendError::NoWorkers(Tell::Nothing).into()));
    assert_eq!(told(&pool, Tell::Enable(0)).await, Ok(1));
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(pool.call(Tell::Nothing).await, Ok(("clerk", 0)));
}

#[tokio::test(start_paused = true)]
async fn p14_started_sets_the_options_of_the_pool() {
    let (boss, _hears) = Boss::with(|setup| {
        setup.workers(2).bounds(1..=2).mailbox(7).capacity(1).overflow(Overflow::Reject);
        Ok(())
    });
    let pool = Pool::new(|_| Clerk).workers(6).coordinator(boss).spawn().await.unwrap();
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.capacity), (2, 1));
    let more = pool.admin().add(1).map(drop);
    assert_eq!(more, Err(AdminError::OutOfBounds { asked: 3, bounds: 1..=2 }));
    let hang = || pool.send(Tell::Hang);
    while hang().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(hang().await.unwrap_err().without_message(), NotAccepted::Full);
}

#[tokio::test(start_paused = true)]
async fn p14_options_that_started_sets_wrongly_fail_the_spawn() {
    let (boss, _hears) = Boss::with(|setup| {
        setup.bounds(4..=8);
        Ok(())
    });
    let spawned = Pool::new(|_| Clerk).workers(3).coordinator(boss).spawn().await;
    assert!(matches!(spawned, Err(SpawnError::OutOfRange { setting: "workers", .. })));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_started_fails_the_spawn_with_its_error_and_nothing_is_left_running() {
    let (boss, mut hears) = Boss::with(|_| Err(Trouble("no licence".into())));
    let spawned = Pool::new(|_| Clerk).name("office").coordinator(boss).spawn().await;
    let Err(SpawnError::CoordinatorFailed { pool, error }) = spawned else {
        panic!("it is the coordinator's error");
    };
    assert_eq!(pool, "office");
    assert_eq!(error.downcast_ref::<Trouble>(), Some(&Trouble("no licence".into())));
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_panic_in_started_fails_the_spawn() {
    let (boss, _hears) = Boss::with(|_| panic!("on purpose"));
    let spawned = Pool::new(|_| Clerk).coordinator(boss).spawn().await;
    let Err(SpawnError::CoordinatorFailed { error, .. }) = spawned else {
        panic!("it is the coordinator's panic");
    };
    assert!(error.to_string().contains("on purpose"));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_whose_workers_cannot_be_started_ends() {
    let (boss, mut hears) = Boss::new();
    let pool = Pool::<Clerk>::try_new(|_| Err("no chairs"));
    let spawned = pool.coordinator(boss).spawn().await;
    assert!(matches!(spawned, Err(SpawnError::NoWorkerStarted { .. })));
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_spawn_that_is_given_up_leaves_nothing_running() {
    let (boss, mut hears) = Boss::new();
    let pool = Pool::new(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Clerk
    });
    let mut spawning = Box::pin(pool.coordinator(boss).spawn());
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
async fn p14_an_error_goes_to_the_caller_and_then_stops_the_pool_with_that_reason() {
    let (pool, mut hears) = spawn(2).await;
    let failed = CallError::Failed(Trouble("no licence".into()));
    assert_eq!(told(&pool, Tell::Fail).await, Err(failed));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "no licence"), "{reason}");
    assert!(pool.try_send(Tell::Nothing).is_err());
    assert_eq!(told(&pool, Tell::Nothing).await, Err(SendError::Stopped(()).into()));
    while next(&mut hears).await != "gone" {}
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_an_error_at_a_notice_stops_the_pool_with_that_reason() {
    let (mut boss, _hears) = Boss::new();
    boss.fears = |notice| matches!(notice, PoolNotice::WorkerDown { .. });
    let pool = Pool::new(|_| Clerk).coordinator(boss).spawn().await.unwrap();
    pool.send(Tell::Panic).await.unwrap();
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "all is lost"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_that_fails_while_its_workers_start_ends_the_pool() {
    let (mut boss, mut hears) = Boss::new();
    boss.fears = |notice| matches!(notice, PoolNotice::WorkerUp { .. });
    let slow = |slot| {
        std::thread::sleep(Duration::from_millis(10 * slot as u64));
        Clerk
    };
    let pool = Pool::new(slow).workers(4).coordinator(boss).spawn().await.unwrap();
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "all is lost"), "{reason}");
    assert!(next(&mut hears).await.starts_with("up "));
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_panic_goes_to_the_caller_and_then_stops_the_pool_with_that_reason() {
    let (pool, _hears) = spawn(2).await;
    assert_eq!(told(&pool, Tell::Panic).await, Err(CallError::Panicked("on purpose".into())));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Panicked { message, .. } if message == "on purpose"));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_ends_with_a_coordinator_that_leaves_or_is_killed() {
    let (pool, _hears) = spawn(2).await;
    assert_eq!(told(&pool, Tell::Leave).await, Ok(0));
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Normal));
    let (pool, _hears) = spawn(2).await;
    pool.commands().send(Tell::Hang).await.unwrap();
    pool.commands().erase().exit(ExitReason::Killed);
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Killed));
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_of_one_ends_with_its_coordinator_too() {
    let (boss, _hears) = Boss::new();
    let pool = Pool::one(Clerk).coordinator(boss).spawn().await.unwrap();
    assert!(told(&pool, Tell::Fail).await.is_err());
    let reason = timeout(SOON, pool.erase().ended()).await.unwrap();
    assert!(is_failure(&reason, "no licence"), "{reason}");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_answers_calls_later() {
    let (pool, _hears) = spawn(1).await;
    let later = [Tell::Later; 2].map(|tell| {
        let commands = pool.commands().clone();
        tokio::spawn(async move { commands.call(tell).await })
    });
    assert_eq!(told(&pool, Tell::Nothing).await, Ok(1), "it goes on meanwhile");
    while told(&pool, Tell::AnswerLater).await == Ok(0) {}
    while later.iter().any(|call| !call.is_finished()) {
        assert!(told(&pool, Tell::AnswerLater).await.is_ok());
    }
    for call in later {
        assert_eq!(call.await.unwrap().unwrap().0, "boss");
    }
}

#[tokio::test(start_paused = true)]
async fn p14_what_a_coordinator_publishes_is_seen_whatever_it_does() {
    let (pool, _hears) = spawn(1).await;
    assert_eq!(told(&pool, Tell::Publish(17)).await, Ok(0));
    pool.commands().send(Tell::Hang).await.unwrap();
    let published = pool.published(&Items::All);
    assert_eq!(published, [(Arc::from("told"), Value::from(17_u64))]);
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_hears_of_workers_that_come_and_go() {
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(told(&pool, Tell::Add(1)).await, Ok(2));
    assert_eq!(next(&mut hears).await, "up 1");
    assert_eq!(told(&pool, Tell::Remove(1)).await, Ok(1));
    assert_eq!(next(&mut hears).await, "down 1: normal");
    pool.send(Tell::Panic).await.unwrap();
    assert_eq!(next(&mut hears).await, "down 0: panicked: on purpose");
    assert_eq!(next(&mut hears).await, "up 0");
    pool.stop(Stop::Now).await;
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_hears_that_its_pool_is_saturated_ten_times_a_second_at_most() {
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    while pool.try_send(Tell::Hang).is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(next(&mut hears).await, "saturated");
    for _ in 0..100 {
        assert!(pool.try_send(Tell::Hang).is_err());
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(hears.try_recv().is_err());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(pool.try_reserve().is_err());
    assert_eq!(next(&mut hears).await, "saturated");
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_hears_of_those_who_wait_to_reserve() {
    let milli = Duration::from_millis(1);
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let mut held = Vec::new();
    while let Ok(Ok(permit)) = tokio::time::timeout(milli, pool.reserve()).await {
        held.push(permit);
    }
    assert_eq!(next(&mut hears).await, "saturated");
    tokio::time::sleep(100 * milli).await;
    assert!(tokio::time::timeout(milli, pool.reserve_owned()).await.is_err());
    assert_eq!(next(&mut hears).await, "saturated");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn p14_commands_are_answered_while_the_pool_is_saturated_and_all_handlers_are_stuck() {
    let (pool, _hears) = spawn(2).await;
    while timeout(Duration::from_millis(1), pool.send(Tell::Hang)).await.is_ok() {}
    let limit = Duration::from_millis(10);
    let answer = timeout(limit, pool.commands().call(Tell::Resize(5))).await;
    assert_eq!(answer.unwrap(), Ok(("boss", 5)));
}

#[tokio::test(start_paused = true)]
async fn p14_notices_come_before_the_commands_that_wait() {
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let later = pool.admin().add(2).unwrap();
    assert!(later.done(SOON).await.is_complete());
    assert_eq!(told(&pool, Tell::Nothing).await, Ok(3));
    let mut up = [next(&mut hears).await, next(&mut hears).await];
    up.sort();
    assert_eq!(up, ["up 1", "up 2"]);
}

#[tokio::test(start_paused = true)]
async fn p14_a_slow_coordinator_holds_up_nobody_and_is_told_how_much_it_has_missed() {
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    pool.commands().send(Tell::Sleep(10_000)).await.unwrap();
    for _ in 0..300 {
        let admin = pool.admin();
        assert_eq!(admin.add(1).unwrap().done(SOON).await.started.len(), 1);
        assert_eq!(admin.remove(1).unwrap().done(SOON).await.left.len(), 1);
    }
    assert_eq!(pool.call(Tell::Nothing).await.unwrap().0, "clerk");
    assert_eq!(next(&mut hears).await, format!("Lagged({})", 600 - 256));
    for _ in 0..128 {
        assert_eq!(next(&mut hears).await, "up 1");
        assert_eq!(next(&mut hears).await, "down 1: normal");
    }
    assert!(hears.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn p14_urgent_messages_go_to_the_coordinator_where_that_was_asked_for() {
    let (boss, _hears) = Boss::new();
    let pool = Pool::new(|_| Clerk).workers(1).mailbox(1).coordinator(boss);
    let pool = pool.coordinator_takes_urgent().spawn().await.unwrap();
    while timeout(Duration::from_millis(1), pool.send(Tell::Hang)).await.is_ok() {}
    let urgent = || Envelope::urgent();
    assert_eq!(pool.call_with(Tell::Nothing, urgent()).await, Ok(("boss", 1)));
    assert_eq!(pool.stats().accepted, 2, "none of them is the workers'");
    pool.send_with(Tell::Sleep(100), urgent()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let refused = (0..=1_000).find_map(|_| pool.try_send_with(Tell::Nothing, urgent()).err());
    let full = refused.map(|refused| refused.without_message());
    assert_eq!(full, Some(NotAccepted::Full), "its mailbox is what bounds them");
    let waits = timeout(SOON, pool.call_with(Tell::Nothing, urgent()));
    assert_eq!(waits.await.unwrap(), Ok(("boss", 1)));
}

#[tokio::test(start_paused = true)]
async fn p14_urgent_messages_are_urgent_work_otherwise() {
    let (pool, _hears) = spawn(1).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    pool.send(Tell::Sleep(100)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
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

#[tokio::test(start_paused = true)]
async fn p14_a_pool_that_has_stopped_takes_no_urgent_message() {
    let (boss, mut hears) = Boss::new();
    let pool = Pool::new(|_| Clerk).coordinator(boss).coordinator_takes_urgent();
    let pool = pool.spawn().await.unwrap();
    pool.send(Tell::Sleep(1_000)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let admin = pool.admin();
    let stopping = tokio::spawn(async move { admin.stop(Stop::Now).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let refused = pool.try_send_with(Tell::Nothing, Envelope::urgent()).unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    assert_eq!(told(&pool, Tell::Nothing).await, Ok(3), "its coordinator still answers");
    stopping.await.unwrap();
    while next(&mut hears).await != "gone" {}
}

#[tokio::test(start_paused = true)]
async fn p14_a_pool_can_be_stopped_from_inside_a_command() {
    let (pool, mut hears) = spawn(1).await;
    for _ in 0..2 {
        pool.send(Tell::Sleep(10)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(told(&pool, Tell::Stop).await, Ok(1), "one was in hand, one is left over");
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
}

/// Stops its pool through the pool's own handle.
struct Closer(Arc<Mutex<Option<CoordinatedPool<Clerk, Closer>>>>);

impl Coordinator<Clerk> for Closer {
    type Command = ();
    type Reply = ();
    type Error = Trouble;

    async fn command(
        &mut self,
        (): (),
        _pool: &PoolAdmin<Clerk>,
        _cx: &mut Context<Self>,
    ) -> Result<(), Trouble> {
        let pool = self.0.lock().take().unwrap();
        pool.stop(Stop::within(SOON)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn p14_a_coordinator_that_stops_its_pool_does_not_wait_for_itself() {
    let own: Arc<Mutex<Option<CoordinatedPool<Clerk, Closer>>>> = Arc::default();
    let pool = Pool::new(|_| Clerk).coordinator(Closer(own.clone())).spawn().await.unwrap();
    let commands = pool.commands().clone();
    *own.lock() = Some(pool);
    assert_eq!(timeout(SOON / 30, commands.call(())).await.unwrap(), Ok(()));
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_a_stop_ends_the_coordinator_last_even_a_stuck_one() {
    let (pool, mut hears) = spawn(1).await;
    let hang = pool.commands().clone();
    let stuck = tokio::spawn(async move { hang.call(Tell::Hang).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let waiting = pool.commands().clone();
    let waiting = tokio::spawn(async move { waiting.call(Tell::Nothing).await });
    let report = timeout(Duration::from_secs(6), pool.stop(Stop::Now)).await.unwrap();
    assert!(report.wedged.is_empty());
    for call in [stuck, waiting] {
        assert_eq!(call.await.unwrap(), Err(CallError::Stopped));
    }
    assert_eq!(next(&mut hears).await, "up 0");
    assert_eq!(next(&mut hears).await, "gone", "it was dropped before it could hear of the end");
    nothing_runs().await;
}

#[tokio::test(start_paused = true)]
async fn p14_without_addresses_the_pool_drains_and_stops_and_its_coordinator_with_it() {
    let (pool, mut hears) = spawn(1).await;
    assert_eq!(next(&mut hears).await, "up 0");
    let commands = pool.commands().clone();
    for _ in 0..2 {
        pool.send(Tell::Sleep(10)).await.unwrap();
    }
    let any = pool.erase();
    drop(pool);
    assert_eq!(commands.call(Tell::Nothing).await, Ok(("boss", 1)), "it is there to the end");
    let reason = timeout(SOON, any.ended()).await.unwrap();
    assert!(matches!(reason, ExitReason::Shutdown));
    assert_eq!(next(&mut hears).await, "stopped: shut down");
    assert_eq!(next(&mut hears).await, "gone");
    nothing_runs().await;
    assert_eq!(commands.call(Tell::Nothing).await, Err(SendError::Stopped(Tell::Nothing).into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_no_pool_outlives_its_addresses_on_several_threads() {
    for round in 0..50 {
        let (pool, _hears) = spawn(2).await;
        let _ = pool.try_send(if round % 2 == 0 { Tell::Panic } else { Tell::Nothing });
        let _ = pool.commands().try_send(Tell::Resize(round % 5));
        drop(pool);
    }
    nothing_runs().await;
}
