//! Layers around actors: what they see, what they may do, and that nothing else changes (A19).

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, CallError, Context, DeadLetterReason, DeadLetters, Delivery,
    ExitReason, Layer, Pool, Restarts, Stop,
    layer::{Layered, Next, around},
};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Echo(u32),
    /// Where the handler runs: pool, slot, restarts.
    Where,
    Sleep(Duration),
    /// Like `Sleep`, with the message left in its delivery.
    LookAndSleep(Duration),
    Fail,
    Panic,
    /// Answered from another task.
    Elsewhere(u32),
}

pub(super) type Log = Arc<Mutex<Vec<String>>>;

#[derive(Default)]
struct Desk(Log);

impl Actor for Desk {
    type Message = Ask;
    type Reply = String;
    type Error = &'static str;

    async fn handle(
        &mut self,
        message: Ask,
        cx: &mut Context<Self>,
    ) -> Result<String, Self::Error> {
        write(&self.0, "actor");
        match message {
            Ask::Echo(number) => return Ok(number.to_string()),
            Ask::Where => return Ok(format!("{} {} {}", cx.pool(), cx.slot(), cx.restarts())),
            Ask::Sleep(time) | Ask::LookAndSleep(time) => tokio::time::sleep(time).await,
            Ask::Fail => return Err("failed"),
            Ask::Panic | Ask::Elsewhere(_) => panic!("on purpose"),
        }
        Ok(String::new())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, String, Self::Error>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<String>, Self::Error> {
        match delivery.message() {
            Some(&Ask::LookAndSleep(time)) => tokio::time::sleep(time).await,
            Some(Ask::Panic) => panic!("on purpose"),
            Some(&Ask::Elsewhere(number)) => {
                let port = delivery.take_reply_port().unwrap();
                tokio::spawn(async move { port.reply(number.to_string()) });
                return Ok(Answer::Deferred);
            }
            _ => {}
        }
        self.handle(delivery.take(), cx).await.map(Answer::Reply)
    }

    async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), Self::Error> {
        write(&self.0, format!("started {} {}", cx.name(), cx.restarts()));
        Ok(())
    }

    async fn stopped(&mut self, reason: &ExitReason) {
        write(&self.0, format!("stopped {reason:?}"));
    }
}

fn write(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Records what passes through.
pub(super) struct Noted {
    name: &'static str,
    log: Log,
}

impl<A: Actor<Error: Debug>> Layer<A> for Noted {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        write(&self.log, format!("into {}", self.name));
        let handled = next.run(delivery).await;
        let outcome = handled.as_ref().map_or_else(|error| format!("{error:?}"), |_| "ok".into());
        write(&self.log, format!("{} saw {outcome}", self.name));
        handled
    }
}

pub(super) fn noted(
    name: &'static str,
    log: &Log,
) -> impl Fn(usize) -> Noted + Send + Sync + 'static {
    let log = log.clone();
    move |_| Noted { name, log: log.clone() }
}

fn desks(log: &Log) -> impl Fn(usize) -> Desk + Send + Sync + 'static {
    let log = log.clone();
    move |_| Desk(log.clone())
}

/// Drops the handler at its await after a second.
struct Hurried;

impl<A: Actor<Error = &'static str>> Layer<A> for Hurried {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        tokio::time::timeout(SECOND, next.run(delivery)).await.unwrap_or(Err("too slow"))
    }
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a19_a_message_passes_the_layers_from_outside_in_and_its_answer_back() {
    let log = Log::default();
    let inner = around(desks(&log), noted("inner", &log));
    let pool = Pool::new(around(inner, noted("outer", &log))).workers(1).spawn().await.unwrap();
    taken(&log);
    assert_eq!(pool.call(Ask::Echo(7)).await.unwrap(), "7");
    let passed = ["into outer", "into inner", "actor", "inner saw ok", "outer saw ok"];
    assert_eq!(taken(&log), passed);
    pool.send(Ask::Echo(8)).await.unwrap();
    pool.stop(Stop::within(HOUR)).await;
    assert_eq!(taken(&log)[..5], passed, "a send as well");
}

#[tokio::test(start_paused = true)]
async fn a19_a_layer_sees_errors_which_are_then_the_policy_s() {
    let log = Log::default();
    let pool = Pool::new(around(desks(&log), noted("layer", &log)));
    // More workers would start later, and log that.
    let pool = pool.workers(1).spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Fail).await, Err(CallError::Failed("failed")));
    assert_eq!(taken(&log).last().unwrap(), "layer saw \"failed\"");
}

/// Answers numbers below ten itself, and counts.
#[derive(Clone, Default)]
struct Small(Arc<AtomicUsize>);

impl<A: Actor<Message = Ask, Reply = String>> Layer<A> for Small {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, String, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<String>, A::Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match delivery.message() {
            Some(Ask::Echo(small @ 0..10)) => Ok(Answer::Reply(format!("small {small}"))),
            _ => next.run(delivery).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a19_a_layer_may_answer_itself() {
    let (log, small) = (Log::default(), Small::default());
    let layer = small.clone();
    let pool = Pool::new(around(desks(&log), move |_| layer.clone())).workers(3);
    let pool = pool.spawn().await.unwrap();
    taken(&log);
    assert_eq!(pool.call(Ask::Echo(3)).await.unwrap(), "small 3");
    assert!(!taken(&log).contains(&"actor".to_owned()), "the actor is not asked");
    assert_eq!(pool.call(Ask::Echo(30)).await.unwrap(), "30");
    pool.stop(Stop::within(HOUR)).await;
    assert_eq!(small.0.load(Ordering::SeqCst), 2, "it is around all workers");
    assert_eq!(pool.stats().handled, 2);
}

#[tokio::test(start_paused = true)]
async fn a19_a_call_may_be_answered_elsewhere_through_layers() {
    let log = Log::default();
    let pool = Pool::new(around(desks(&log), noted("layer", &log))).spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Elsewhere(5)).await.unwrap(), "5");
}

#[tokio::test(start_paused = true)]
async fn a19_the_actor_in_a_layer_knows_where_it_runs_also_after_panics_and_timeouts() {
    let (log, letters) = (Log::default(), DeadLetters::default());
    let kept = letters.clone();
    let layers = around(around(desks(&log), |_| Hurried), noted("outer", &log));
    let pool = Pool::new(layers)
        .name("desks")
        .workers(1)
        .restarts(Restarts { max: 9, ..Restarts::default() });
    let pool = pool.on_dead_letter(move |letter| drop(kept.push(letter)));
    let pool = pool.spawn().await.unwrap();
    assert_eq!(taken(&log), ["started desks-0 0"]);
    for restarts in 0..3 {
        assert_eq!(pool.call(Ask::Where).await.unwrap(), format!("desks 0 {restarts}"));
        assert_eq!(pool.call(Ask::Sleep(HOUR)).await, Err(CallError::Failed("too slow")));
        assert_eq!(pool.call(Ask::Where).await.unwrap(), format!("desks 0 {restarts}"));
        pool.call(Ask::Panic).await.unwrap_err();
    }
    pool.call(Ask::Where).await.unwrap();
    assert!(taken(&log).contains(&"started desks-0 3".to_owned()));
    pool.stop(Stop::within(HOUR)).await;
    assert_eq!(taken(&log), ["stopped Shutdown"], "hooks are the actor's");
}

#[tokio::test(start_paused = true)]
async fn a19_a_panic_passes_through_and_the_message_survives_as_without_a_layer() {
    let (log, letters) = (Log::default(), DeadLetters::default());
    let kept = letters.clone();
    let pool = Pool::new(around(desks(&log), noted("layer", &log)));
    let pool = pool.on_dead_letter(move |letter| drop(kept.push(letter))).spawn().await.unwrap();
    let answer = pool.call(Ask::Panic).await;
    assert_eq!(answer, Err(CallError::Panicked("on purpose".to_owned())));
    let info = &letters.list(None, 1)[0];
    assert_eq!(info.reason, DeadLetterReason::Panicked);
    assert_eq!(letters.remove(info.id).unwrap().message, Some(Ask::Panic));
    assert_eq!(pool.stats().restarts, 1);
}

/// Retries by itself if the handler has left the message in place.
struct Again;

impl<A: Actor> Layer<A> for Again {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        match next.run(delivery).await {
            Err(_) if delivery.message().is_some() => next.run(delivery).await,
            handled => handled,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a19_a_layer_may_run_the_inside_again_while_the_message_is_there() {
    let log = Log::default();
    let again = around(around(around(desks(&log), |_| Hurried), noted("inner", &log)), |_| Again);
    let pool = Pool::new(again).workers(1).spawn().await.unwrap();
    let attempts = |log: &Log| taken(log).iter().filter(|line| *line == "into inner").count();
    pool.call(Ask::LookAndSleep(HOUR)).await.unwrap_err();
    assert_eq!(attempts(&log), 2);
    pool.call(Ask::Sleep(HOUR)).await.unwrap_err();
    assert_eq!(attempts(&log), 1, "the handler had taken it");
}

#[tokio::test(start_paused = true)]
async fn a19_keys_keep_their_order_through_layers() {
    let log = Log::default();
    let pool = Pool::new(around(desks(&log), noted("layer", &log))).workers(4);
    let pool = pool.ordered_by(|_| 0).spawn().await.unwrap();
    for _ in 0..3 {
        pool.send(Ask::Sleep(SECOND)).await.unwrap();
    }
    pool.stop(Stop::within(HOUR)).await;
    let one = ["into layer", "actor", "layer saw ok"].map(str::to_owned);
    // The other workers start in their own time.
    let mut lines = taken(&log);
    lines.retain(|line| !line.starts_with("started"));
    assert_eq!(lines[..9].chunks(3).collect::<Vec<_>>(), [one.as_slice(); 3], "one at a time");
}

#[test]
fn a19_an_actor_in_a_layer_can_be_looked_at() {
    let layered = Layered::new(Desk::default(), Small::default());
    assert!(layered.actor().0.lock().unwrap().is_empty());
    assert_eq!(layered.layer().0.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a19_a_builder_puts_layers_around_what_has_been_set_up() {
    let log = Log::default();
    let pool =
        Pool::new(desks(&log)).workers(1).ordered_by(|_| 0).retry(2, Backoff::new(SECOND, SECOND));
    let pool = pool.layer(noted("inner", &log)).layer(noted("outer", &log)).spawn().await.unwrap();
    taken(&log);
    pool.call(Ask::Sleep(SECOND)).await.unwrap();
    assert_eq!(taken(&log), ["into outer", "into inner", "actor", "inner saw ok", "outer saw ok"]);
}
