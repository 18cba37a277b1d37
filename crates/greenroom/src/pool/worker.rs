//! The life of a worker: start, work, panic, restart, end.

use std::{
    any::Any,
    future::{Future, poll_fn},
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    change::{Outcomes, SlotOutcome},
    clock::later,
    core::Core,
    discard::discard,
    employed::Employed,
    hold::{Hold, Posture, Source, Taken},
    occupied::AtWork,
    restart::RestartLog,
    seat::Status,
    tally::count,
};
use crate::{Actor, Answer, Context, ExitReason, step_aside};

/// Builds the actor of a slot. Called once per start, on the runtime's blocking pool unless it is quick.
pub(crate) struct Factory<A> {
    build: Build<A>,
    /// It does not block, and may be called on the worker's own task.
    quick: bool,
}

type Build<A> = Arc<dyn Fn(usize) -> Result<A, String> + Send + Sync>;

impl<A> Clone for Factory<A> {
    fn clone(&self) -> Self {
        Self { build: self.build.clone(), quick: self.quick }
    }
}

impl<A: Send + 'static> Factory<A> {
    pub(crate) fn new(build: Build<A>) -> Self {
        Self { build, quick: false }
    }

    pub(crate) fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    async fn build(&self, worker: usize) -> Result<A, String> {
        let build = self.build.clone();
        let built = match self.quick {
            true => catch_unwind(AssertUnwindSafe(|| build(worker))),
            false => match tokio::task::spawn_blocking(move || build(worker)).await {
                Ok(built) => Ok(built),
                Err(error) => Err(error.try_into_panic().map_err(|error| error.to_string())?),
            },
        };
        built.unwrap_or_else(|panic| {
            let reason = format!("the factory panicked: {}", panic_message(&*panic));
            discard(panic);
            Err(reason)
        })
    }
}

/// Runs the worker of one slot until the pool has ended, it is told to leave, or the slot is disabled.
pub(crate) async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Employed<A, K>,
    slot: usize,
    outcomes: Outcomes,
) {
    let mut departure = Departure { core: &core, slot, disabled: false };
    departure.disabled = live(&core, slot, outcomes).await;
}

/// A worker that was told to leave is gone when its task ends, also where that is dropped.
struct Departure<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: &'a Core<A, K>,
    slot: usize,
    /// The slot is not this worker's any more: another may have been started there.
    disabled: bool,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Departure<'_, A, K> {
    fn drop(&mut self) {
        if !self.disabled && self.core.seats.at(self.slot).status() == Status::Leaving {
            self.core.left(self.slot);
        }
    }
}

/// True where it has ended with its slot disabled.
async fn live<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    outcomes: Outcomes,
) -> bool {
    let mut cx = Context::new(core.settings.name.clone(), slot);
    let Some(mut actor) = first_start(core, slot, &mut cx, outcomes).await else { return false };
    let mut log = RestartLog::default();
    let mut hold = Hold::new(core.clone(), slot);
    let own = Some((core.identity(), slot));
    loop {
        core.has_started(slot);
        hold.wake_up();
        let Err(panic) = CatchUnwind(Box::pin(work(&mut hold, &mut actor, &mut cx)), own).await
        else {
            hold.rest();
            end(actor).await;
            return false;
        };
        core.has_died(slot);
        bury(&mut hold, &cx, panic);
        discard(actor);
        let Some(wait) = log.next(&core.settings.restarts, Instant::now(), core.chance()) else {
            return disable(core, slot, &cx);
        };
        pause(core, slot, wait).await;
        count(&core.seats.at(slot).tally.restarts);
        cx.restarted();
        actor = match start_again(core, slot, &mut cx, 0).await {
            Some(actor) => actor,
            None => return false,
        };
    }
}

/// Tells what the first start came to, and tries again where it failed.
async fn first_start<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &mut Context<A>,
    outcomes: Outcomes,
) -> Option<A> {
    let first = tokio::select! {
        biased;
        () = core.over(slot) => return None,
        first = start(&core.settings.factory, slot, cx) => first,
    };
    match first {
        Ok(actor) => {
            let _ = outcomes.send(SlotOutcome::Started(slot));
            Some(actor)
        }
        Err(why) => {
            let _ = outcomes.send(SlotOutcome::StartFailed(slot, why));
            drop(outcomes);
            start_again(core, slot, cx, 1).await
        }
    }
}

/// Settles what a worker held that panicked, and lets others go on with the rest.
fn bury<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    hold: &mut Hold<A, K>,
    cx: &Context<A>,
    panic: Box<dyn Any + Send>,
) {
    let message = panic_message(&*panic);
    discard(panic);
    tracing::error!(
        worker = cx.name(),
        panic = message,
        "a handler panicked; the worker is restarted"
    );
    hold.panicked(message);
    hold.rest();
}

/// Handles messages until the pool has ended.
async fn work<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    hold: &mut Hold<A, K>,
    actor: &mut A,
    cx: &mut Context<A>,
) {
    let core = hold.core.clone();
    let (mut in_a_row, mut turn) = (0_u32, 0_u32);
    while !hold.is_over() {
        let from_lane = matches!(hold.source, Source::Lane { .. });
        let mut taken = hold.take_next();
        if taken == Taken::Nothing {
            if !from_lane && in_a_row > 1 {
                linger(hold).await;
                turn = 0;
            }
            in_a_row = 0;
            taken = hold.take_anywhere();
        }
        turn += 1;
        if turn > MESSAGES_PER_TURN {
            turn = 0;
            core.serve_waiters();
            step_aside().await;
        }
        match taken {
            Taken::Nothing if !hold.is_over() => {
                idle(hold).await;
                turn = 0;
            }
            Taken::Nothing | Taken::Skipped => {}
            Taken::InHand => {
                in_a_row += 1;
                // Another worker is woken for what else is ready. The runtime puts it where only this thread looks, so
                // this worker steps back once, before it perhaps computes for long.
                if core.wake.wants_more() && core.wake.one(&core.clock.bell) {
                    step_aside().await;
                }
                let result = attempt(hold, actor, cx).await;
                hold.settle(result);
            }
        }
    }
}

/// Lets other tasks of the runtime have a turn; senders fill the queues meanwhile, and need not wake anybody.
async fn linger<A: Actor, K: Hash + Eq + Send + Sync + 'static>(hold: &mut Hold<A, K>) {
    fence(Ordering::SeqCst);
    hold.core.serve_waiters();
    let lingers = hold.core.wake.linger();
    if lingers {
        hold.posture = Posture::Lingering;
    }
    step_aside().await;
    if lingers {
        hold.core.wake.look_again();
        hold.posture = Posture::Awake;
    }
}

/// Messages handled or skipped before other tasks of the runtime get a turn, where no queue has run dry before, or the next
/// message was always there just in time: each in a lane of its own, or from a sender that runs beside the worker.
const MESSAGES_PER_TURN: u32 = 64;

/// One attempt: polls the handler, and lets go of the shard when it suspends.
async fn attempt<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    hold: &mut Hold<A, K>,
    actor: &mut A,
    cx: &mut Context<A>,
) -> Result<Answer<A::Reply>, A::Error> {
    let Hold { core, worker, source, delivery, posture, .. } = hold;
    let mut handler = pin!(actor.receive(delivery, cx));
    poll_fn(|task| {
        if *posture == Posture::Suspended {
            core.wake.enter(&core.clock.bell);
            *posture = Posture::Awake;
        }
        let polled = handler.as_mut().poll(task);
        // A used-up cooperative budget makes ready resources look pending, and would open lanes for nothing.
        if polled.is_pending() && !tokio::task::coop::has_budget_remaining() {
            task.waker().wake_by_ref();
            return polled;
        }
        if polled.is_pending() {
            *source = core.suspend(*worker, *source);
            *posture = Posture::Suspended;
            core.wake.leave(&core.clock.bell);
            core.serve_waiters();
        }
        polled
    })
    .await
}

/// Waits until there is something to do.
async fn idle<A: Actor, K: Hash + Eq + Send + Sync + 'static>(hold: &mut Hold<A, K>) {
    let core = hold.core.clone();
    core.wake.lie_down(hold.worker);
    hold.posture = Posture::LyingDown;
    core.wake.leave(&core.clock.bell);
    core.serve_waiters();
    core.tell_progress();
    if core.ended.load(Ordering::SeqCst) {
        core.wake.all();
    }
    if hold.seat.has_orders() {
        core.wake.call(hold.worker, &core.clock.bell);
    }
    let errand = core.wake.woken(hold.worker).await;
    hold.posture = Posture::Awake;
    match errand {
        Some(index) => hold.source = Source::Attending { index, alone: true },
        None => hold.join = true,
    }
}

async fn start<A: Actor>(
    factory: &Factory<A>,
    worker: usize,
    cx: &mut Context<A>,
) -> Result<A, String> {
    let mut actor = factory.build(worker).await?;
    let reason = match CatchUnwind(Box::pin(actor.started(cx)), None).await {
        Ok(Ok(())) => return Ok(actor),
        Ok(Err(error)) => start_failed(error),
        Err(panic) => {
            let reason = format!("the `started` hook panicked: {}", panic_message(&*panic));
            discard(panic);
            reason
        }
    };
    discard(actor);
    Err(reason)
}

/// The error of an actor may be of any type; it is quoted where it is text or an error in a box, and named otherwise.
fn start_failed<E: 'static>(error: E) -> String {
    let any: &dyn Any = &error;
    let text = any.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| any.downcast_ref::<&str>().copied()).map(str::to_owned);
    let text = text.or_else(|| {
        let boxed = any.downcast_ref::<Box<dyn std::error::Error + Send + Sync>>();
        boxed.map(ToString::to_string)
    });
    let text = text.unwrap_or_else(|| std::any::type_name::<E>().to_owned());
    discard(error);
    format!("the `started` hook failed: {text}")
}

/// Tries until the factory works again, however long that takes: a slot is never lost (P20). `None` once the pool has
/// ended; a start that takes long is left to itself then.
async fn start_again<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &mut Context<A>,
    mut failures: u32,
) -> Option<A> {
    let backoff = core.settings.restarts.backoff;
    loop {
        if failures > 0 {
            pause(core, slot, backoff.wait(failures, core.chance())).await;
        }
        let started = tokio::select! {
            biased;
            () = core.over(slot) => return None,
            started = start(&core.settings.factory, slot, cx) => started,
        };
        match started {
            Ok(actor) => return Some(actor),
            Err(reason) => tracing::warn!(
                worker = cx.name(),
                reason,
                "a worker could not be started; trying again"
            ),
        }
        failures = failures.saturating_add(1);
    }
}

/// Waits for this long, or until the pool has ended or the worker is to leave.
async fn pause<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    wait: Duration,
) {
    let _ = tokio::time::timeout_at(later(wait), core.over(slot)).await;
}

async fn end<A: Actor>(mut actor: A) {
    let stopped = async {
        actor.stopped(&ExitReason::Shutdown).await;
    };
    if CatchUnwind(Box::pin(stopped), None).await.is_err() {
        tracing::error!("a `stopped` hook panicked");
    }
}

/// The budget of a slot is used up (P19).
fn disable<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &Context<A>,
) -> bool {
    let disabled = core.disable(slot);
    if disabled {
        tracing::error!(worker = cx.name(), "too many restarts; the worker's slot is disabled");
    }
    disabled
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}

/// Catches panics around a whole future, once per life of a worker and not once per message; and notes whose future it is
/// while it is polled.
struct CatchUnwind<F>(std::pin::Pin<Box<F>>, Option<(usize, usize)>);

impl<F: Future> Future for CatchUnwind<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Self::Output> {
        let _at_work = self.1.map(|(pool, slot)| AtWork::begin(pool, slot));
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pool, Restarts, Stop};

    struct Worker;

    impl Actor for Worker {
        type Message = u64;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<(), ()> {
            match number % 10 {
                0 => panic!("on purpose"),
                1 => return Err(()),
                2..5 => tokio::time::sleep(Duration::from_millis(number % 7)).await,
                5 => tokio::task::yield_now().await,
                _ => {}
            }
            Ok(())
        }
    }

    async fn messages_of_all_kinds(seed: u64) -> Arc<Core<Worker, u64>> {
        let restarts = Restarts { max: 1_000_000, ..Restarts::default() };
        let pool = Pool::new(|_| Worker).workers(5).restarts(restarts);
        let core = pool.ordered_by(|number: &u64| number % 3).spawn_core().await.unwrap();
        let pool = Pool::spawned(core.clone());
        for number in 0..200 {
            pool.send(number * seed).await.unwrap();
        }
        // Long enough for every restart; the pool is not stopped by its last address.
        tokio::time::sleep(Duration::from_secs(100_000)).await;
        std::mem::forget(pool);
        core
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_lies_down_just_as_the_pool_ends_gets_up_again() {
        let restarts = Restarts { max: 0, ..Restarts::default() };
        let core = Pool::new(|_| Worker).workers(1).restarts(restarts).spawn_core().await.unwrap();
        let mut hold = Hold::new(core.clone(), 0);
        core.push_and_wait_for_the_last_worker().await;
        hold.wake_up();
        core.end();
        let up = tokio::time::timeout(Duration::from_secs(1), idle(&mut hold)).await;
        assert!(up.is_ok(), "it would sleep for ever");
    }

    impl Core<Worker, std::convert::Infallible> {
        /// A message that panics disables the only slot, which is then free to be played by a test.
        async fn push_and_wait_for_the_last_worker(self: &Arc<Self>) {
            let address = crate::Address::new(self.clone());
            address.send(0).await.unwrap();
            while self.running.load(Ordering::SeqCst) > 1 {
                step_aside().await;
            }
            std::mem::forget(address);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_room_does_not_wait_for_the_restart_of_a_worker_that_panicked() {
        let hour = Duration::from_secs(3600);
        let restarts = Restarts { backoff: crate::Backoff::new(hour, hour), ..Restarts::default() };
        let pool = Pool::new(|_| Worker).workers(2).capacity(1).restarts(restarts);
        let pool = pool.spawn().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for number in [0, 0, 9] {
            let sent = tokio::time::timeout(Duration::from_secs(1), pool.send(number)).await;
            assert!(sent.is_ok(), "the permit of the message that panicked is free");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn others_get_a_turn_while_abandoned_calls_are_skipped() {
        let pool = Pool::new(|_| Worker).workers(1).capacity(10_000).spawn().await.unwrap();
        for _ in 0..10_000 {
            let mut abandoned = pin!(pool.call(9));
            assert!(poll_fn(|task| Poll::Ready(abandoned.as_mut().poll(task))).await.is_pending());
        }
        let other = tokio::spawn(async move {
            let mut turns = 0;
            while !pool.stats().is_settled() {
                turns += 1;
                step_aside().await;
            }
            turns
        });
        assert!(other.await.unwrap() > 10_000 / MESSAGES_PER_TURN / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_awake_when_nothing_happens() {
        for seed in [1, 3, 7] {
            let core = messages_of_all_kinds(seed).await;
            assert_eq!((core.wake.awake(), core.wake.idle()), (0, 5));
            assert!(!core.wake.any_ready());
            // Workers that are dropped while they lie, and while they work, take their count along.
            let address = crate::Address::new(core.clone());
            address.send(2).await.unwrap();
            step_aside().await;
            core.abort(0..5);
            crate::pool::stop::stop(core.clone(), Stop::Now).await;
            assert_eq!((core.wake.awake(), core.wake.idle()), (0, 0));
        }
    }
}
