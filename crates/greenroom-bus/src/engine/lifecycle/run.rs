//! A run, from its first event to its report.
//!
//! ```text
//! read:  inputs run                      ── all ended, or drain, or stop now ──▶
//! drain: pools handle what was taken, after a stop what is in hand
//!                                        ── all handled, or the deadline, an outage too long, stop now ──▶
//! flush: outputs and dead letters store what they accepted
//! commit: inputs that keep their positions store them ──▶ report
//! ```

use std::{sync::atomic::Ordering, time::Duration};

use greenroom::{
    ExitReason, PoolStats, Stop, StopReport, inspect::WorkerStatus, stats::WorkerStats,
};
use greenroom_config::plural;
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior, sleep_until},
};

use super::{
    commits::{Commits, LastCommit},
    depths::Depths,
    engine::{Engine, Parts, SharedPool},
    phase::Phase,
    standstill::{self, LeftParked, StandstillWatch, is_parked},
    tasks::Tasks,
};
use crate::{
    BoxFuture,
    engine::{
        account::report::{PoolReport, PositionsReport, RunReport, SlowKey, peak_rss_bytes},
        control::{Control, HandlerView},
        egress::outputs::trouble_text,
        intake::{
            reader::{Ended, InputReader},
            replay, returning,
            route::Routing,
        },
        process::{
            job::{JobAddress, PoolJob},
            share_rooms::named,
        },
    },
    name::Name,
    router::AckWhen,
    sink::SinkError,
};

/// How often the engine looks at its queues, its outputs and its handlers' health.
const LOOK: Duration = Duration::from_millis(50);

/// Once the run was told to stop now, inputs may take this long to let go, then pools, outputs that
/// deliver to others, all outputs, and commits, each counted from the moment of the stop. Together
/// with a look in between, that keeps the promise to return within a second (G05).
const INPUTS_LET_GO: Duration = Duration::from_millis(200);
const POOLS_LET_GO: Duration = Duration::from_millis(750);
const REMOTE_LET_GO: Duration = Duration::from_millis(800);
const OUTPUTS_LET_GO: Duration = Duration::from_millis(850);
const COMMITS_LET_GO: Duration = Duration::from_millis(950);

/// Events that wait in an output that has stored and rejected nothing for this long are given back
/// by a stop.
const STUCK: Duration = Duration::from_secs(1);

/// A deadline that is never reached: a hundred years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

impl Engine {
    /// Runs until every input has ended and all events are settled, or until it is stopped through
    /// [`Control`]. Never fails: errors are in the report. While one input is read, others may be
    /// added; once the last has ended, no more can be.
    ///
    /// A run that is not stopped has no deadline: it waits for its slowest handler. One that is
    /// stopped returns within a second after its deadline, even if a handler, an input or an output
    /// blocks its thread (on a runtime with others).
    ///
    /// # Cancel safety
    /// Dropping the future drops the inputs and the events that wait for pools. Pools handle their
    /// queued events in the background, but these are not waited for, and outputs are not ended. To
    /// stop a run in order, use [`Control`].
    ///
    /// The future is boxed, like those of
    /// [`EngineBuilder::build`](crate::engine::EngineBuilder::build) and of a
    /// [`RunningRouter`](crate::router::RunningRouter): an `async fn` is compiled where it is
    /// awaited, so each crate that runs an engine would compile all of it once more.
    pub fn run(self) -> BoxFuture<'static, RunReport> {
        Box::pin(run(self.parts))
    }
}

async fn run(parts: Parts) -> RunReport {
    let mut run = Run::new(&parts);
    run.read(&parts).await;
    let stats = run.drain(&parts).await;
    run.flush(&parts).await;
    let positions = run.commit(&parts).await;
    RunReport { positions, ..run.report(&parts, stats) }
}

/// Shares whose target wants nothing more go on once the inputs have ended: each of their events
/// becomes a dead letter, or the run would never end.
fn resume_shares(engine: &Parts) {
    for (settings, managed) in engine.shared.process.pools.iter().zip(&*engine.managed) {
        let Ok(shares) = managed.admin.shares() else { continue };
        settings.shares.end().into_iter().for_each(|share| shares.resume(share));
    }
}

/// When each step happened.
struct Moments {
    started: Instant,
    /// The deadline of the requested drain.
    deadline: Option<Instant>,
    /// When it was first seen that nothing more is read, while that is so.
    all_read: Option<Instant>,
    /// When the run was seen to be told to stop now.
    stopped: Option<Instant>,
}

struct Run {
    control: Control,
    phase: watch::Receiver<Phase>,
    look: Interval,
    at: Moments,
    /// Sinks that are storing the events that they have accepted: of removed outputs and, in the
    /// end, of all.
    finishes: Tasks<Result<(), SinkError>>,
    /// Sources that give nothing any more, and are asked on until the run is over.
    attended: Tasks<()>,
    commits: Commits,
    depths: Depths,
    parked: StandstillWatch,
    /// Events that were left behind parked keys.
    left_parked: u64,
    /// Events in stuck outputs are not waited for: they are delivered again.
    gave_back_outputs: bool,
    errors: Vec<String>,
}

impl Run {
    fn new(engine: &Parts) -> Self {
        Self {
            control: engine.control(),
            phase: engine.phase.subscribe(),
            look: ticks(),
            at: Moments { started: Instant::now(), deadline: None, all_read: None, stopped: None },
            finishes: Tasks::new(),
            attended: Tasks::new(),
            commits: Commits::new(),
            depths: Depths::default(),
            parked: StandstillWatch::default(),
            left_parked: 0,
            gave_back_outputs: false,
            errors: Vec::new(),
        }
    }

    async fn read(&mut self, engine: &Parts) {
        let mut way_back = Tasks::new();
        if let Some(loopback) = &engine.shared.loopback {
            let (input, shared) = (loopback.place, engine.shared.clone());
            let pools = engine.pools.iter().map(|pool| pool.address()).collect();
            let phase = engine.phase.subscribe();
            let routing = Routing::new(shared, input, pools, engine.managed.clone());
            let carried = returning::carry(loopback.clone(), routing, phase);
            way_back.spawn("loopback", carried);
        }
        let mut replays = Tasks::new();
        if let Some(replaying) = &engine.shared.replaying {
            replays.spawn("replays", replay::hand_out(replaying.clone(), engine.shared.clone()));
        }
        self.read_all(engine).await;
        self.end_replays(engine, replays).await;
        // Only an input that was added before the run was to end may have arrived
        // since: it gives nothing.
        engine.shared.inputs.close();
        engine.shared.egress.outputs.close();
        self.end_loopback(engine, way_back).await;
    }

    /// Nothing more is taken to be handled again. Letters that were taken, and not handed on, stay
    /// marked.
    async fn end_replays(&mut self, engine: &Parts, replays: Tasks<()>) {
        let Some(replaying) = &engine.shared.replaying else { return };
        replaying.close();
        self.end_tasks(engine, replays, "replays of dead letters").await;
    }

    /// Until every input has ended and no new one was added.
    async fn read_all(&mut self, engine: &Parts) {
        let (mut intakes, inputs) = (Intakes::new(), &engine.shared.inputs);
        loop {
            self.look_at(engine);
            begin(engine, &mut intakes, &mut self.commits);
            replay::close_if_idle(&engine.shared, intakes.count());
            if self.waited(INPUTS_LET_GO) {
                return self.left(&intakes, "the input did not stop");
            }
            tokio::select! {
                ended = intakes.next() => match ended {
                    Some(Ok(ended)) => self.input_ended(engine, ended),
                    Some(Err((input, error))) => self.error(format!("{input}: the input failed: {error}")),
                    None if inputs.close_if_none_arrived() => return,
                    None => {}
                },
                () = inputs.arrived() => {}
                () = engine.shared.egress.outputs.departed() => {}
                () = replay::changed(&engine.shared) => {}
                () = self.next_look() => {}
            }
        }
    }

    fn input_ended(&mut self, engine: &Parts, Ended { how, attended }: Ended) {
        if let Err(error) = how {
            self.error(error.to_string());
        }
        if let Some(attended) = attended {
            self.attended.spawn("a source", attended.run(engine.phase.subscribe()));
        }
    }

    /// Waits until nothing can come back in any more, and all that came back is with the pools.
    /// Events that are blocked by parked keys are not waited for.
    async fn end_loopback(&mut self, engine: &Parts, way_back: Tasks<()>) {
        let Some(loopback) = &engine.shared.loopback else { return };
        loop {
            self.look_at(engine);
            if self.at.stopped.is_some() || is_parked(engine) {
                break;
            }
            tokio::select! {
                () = loopback.room.idle() => break,
                () = self.next_look() => {}
            }
        }
        loopback.end();
        self.end_tasks(engine, way_back, "the way back").await;
    }

    /// Waits until these have ended, unless they are left because of a stop.
    async fn end_tasks(&mut self, engine: &Parts, mut tasks: Tasks<()>, what: &str) {
        loop {
            self.look_at(engine);
            if self.waited(INPUTS_LET_GO) {
                return self.left(&tasks, &format!("{what} did not end"));
            }
            tokio::select! {
                ended = tasks.next() => match ended {
                    Some(Ok(())) => {}
                    Some(Err((name, error))) => self.error(format!("{name}: {what} failed: {error}")),
                    None => return,
                },
                () = self.next_look() => {}
            }
        }
    }

    fn error(&mut self, error: String) {
        if !self.errors.contains(&error) {
            tracing::error!("{error}");
            self.errors.push(error);
        }
    }

    /// Records the tasks that did not end in time.
    fn left<T: Send + 'static>(&mut self, tasks: &Tasks<T>, what: &str) {
        for name in tasks.left() {
            self.error(format!("{name}: {what} in time"));
        }
    }

    /// True once the run was told to stop now this long ago.
    fn waited(&self, patience: Duration) -> bool {
        self.at.stopped.is_some_and(|at| at.elapsed() >= patience)
    }

    /// Waits until the phase changes, the deadline passes, or it is time for a look.
    ///
    /// # Cancel safety
    /// A dropped future has changed nothing.
    async fn next_look(&mut self) {
        let deadline = self.at.deadline.filter(|_| self.at.stopped.is_none());
        tokio::select! {
            _ = self.phase.changed() => {}
            _ = self.look.tick() => {}
            () = sleep_until(deadline.unwrap_or(self.at.started)), if deadline.is_some() => {}
        }
    }

    /// Records the phase of the run, and counts the time from now.
    fn look_at_phase(&mut self, engine: &Parts) {
        let (phase, now) = (*self.phase.borrow_and_update(), Instant::now());
        if phase == Phase::Drain && self.at.deadline.is_none() {
            self.at.deadline = now.checked_add(engine.deadline);
            engine.give_up_waiting();
        }
        if phase != Phase::Now && self.at.deadline.is_some_and(|deadline| now >= deadline) {
            tracing::warn!("the deadline has passed; what is left is refused");
            self.control.stop_now();
        }
        if *self.phase.borrow_and_update() == Phase::Now {
            self.at.stopped.get_or_insert(now);
        }
    }

    /// Checks the depth of the queues, and the conditions that end a run early.
    fn look_at(&mut self, engine: &Parts) {
        self.look_at_phase(engine);
        self.see_off(engine);
        let queued = self.depths.look(engine.pools.len(), |pool| engine.pools[pool].depth());
        let ledger = &engine.shared.ledger;
        ledger.queued.seen(queued);
        if self.at.stopped.is_some() {
            return;
        }
        for (pool, reason) in stopped_pools(engine) {
            self.error(format!("the pool {pool:?} has stopped: {reason}"));
            self.control.drain();
        }
        let reads = engine.shared.inputs.reading() > 0;
        match reads {
            // Also again: an input may be added while the last one's events wait for room.
            true => self.at.all_read = None,
            false => {
                self.at.all_read.get_or_insert_with(Instant::now);
                resume_shares(engine);
            }
        }
        let ends = stuck_output(engine).or_else(|| self.long_outage(engine));
        let ends = ends.or_else(|| self.long_trouble(engine));
        let ends = ends.or_else(|| self.long_replays(engine));
        if let Some(reason) = ends.or_else(|| self.parked.look(engine, !reads)) {
            self.error(reason);
            self.control.stop_now();
            self.look_at_phase(engine);
        }
    }

    /// A handler whose outage has outlasted the limit while nothing more can be read (D09); an
    /// outage that began earlier gets the whole limit from then on. Inputs count as ended although
    /// their last events may still wait for a full pool.
    fn long_outage(&self, engine: &Parts) -> Option<String> {
        if self.at.all_read?.elapsed() < engine.outage_limit {
            return None;
        }
        engine.shared.process.handlers.iter().find_map(|handler| {
            let (share, outage) = handler.circuits.longest()?;
            let (seconds, error) = (outage.lasted.as_secs(), &outage.error);
            let mut who = format!("the handler {:?}", handler.name);
            if let Some(share) = share {
                who = format!("{} at {who}", named(share.as_ref()));
            }
            (outage.lasted >= engine.outage_limit)
                .then(|| format!("{who} has been in outage for {seconds} s: {error}"))
        })
    }

    /// An output that has stored and rejected nothing for the limit (D13); one that makes progress
    /// with all but one event is waited for. Its waiting events count as neither handled nor given
    /// up.
    fn long_trouble(&self, engine: &Parts) -> Option<String> {
        if self.at.all_read?.elapsed() < engine.outage_limit {
            return None;
        }
        engine.shared.egress.outputs.at_work().iter().find_map(|output| {
            let trouble = output.sink.trouble()?;
            let (name, what) = (&output.name, trouble_text(&trouble));
            (trouble.idle >= engine.outage_limit).then(|| format!("the output {name:?} is {what}"))
        })
    }

    /// A store that could give no letter to replay for as long. They stay marked for the next run.
    fn long_replays(&self, engine: &Parts) -> Option<String> {
        if self.at.all_read?.elapsed() < engine.outage_limit {
            return None;
        }
        let (since, error) = engine.shared.replaying.as_ref()?.failing()?;
        let failing = since.elapsed();
        (failing >= engine.outage_limit).then(|| {
            format!(
                "no dead letter could be taken for a replay for {} s, and the next run goes on \
                 with those that are marked: {error}",
                failing.as_secs()
            )
        })
    }

    /// Ends the outputs that were removed.
    fn see_off(&mut self, engine: &Parts) {
        for departure in engine.shared.egress.outputs.departures() {
            self.finishes.spawn(departure.describe(), departure.end());
        }
    }

    /// Waits until the pools have handled all taken events. A second stop, with no patience,
    /// overtakes the first when the run has to end.
    async fn drain(&mut self, engine: &Parts) -> Vec<PoolStats> {
        let mut stops = Tasks::new();
        // Events that inputs handed over while they stopped.
        engine.give_up_waiting();
        stop_pools(engine, &mut stops, FOREVER);
        let mut overtaken = false;
        loop {
            self.look_at(engine);
            if self.at.stopped.is_some() && !overtaken {
                overtaken = true;
                self.left_parked = parked_now(engine);
                stop_pools(engine, &mut stops, Duration::ZERO);
            }
            if self.waited(POOLS_LET_GO) {
                self.left(&stops, "the pool did not stop");
                break;
            }
            tokio::select! {
                stopped = stops.next() => match stopped {
                    Some(Ok((pool, report))) => {
                        // Their events in hand are refused, and may be done all the same.
                        let in_hand = report.wedged.len() as u64;
                        engine.shared.ledger.unanswered.fetch_add(in_hand, Ordering::Relaxed);
                        report.wedged.iter().for_each(|worker| self.wedged(worker));
                        if !overtaken {
                            self.unhandled(engine, pool, &report.left_over);
                        }
                    }
                    Some(Err((pool, error))) => self.error(format!("{pool}: the pool failed: {error}")),
                    None => break,
                },
                () = self.next_look() => {}
            }
        }
        self.disabled(engine);
        engine.pools.iter().map(|pool| pool.stats()).collect()
    }

    /// Events that a pool gives back although it had all the time it needed: they wait for an
    /// operator's decision, which will not come.
    fn unhandled(&mut self, engine: &Parts, pool: usize, events: &[PoolJob]) {
        let name = &engine.shared.process.pools[pool].name;
        let stopped = engine.pools[pool].erase().exit_reason().is_some_and(|end| has_failed(&end));
        if !events.is_empty() && !stopped {
            let left = LeftParked::count(&engine.shared, events);
            self.left_parked += left.events();
            self.error(format!("the pool {name:?}: {}", left.summary()));
        }
    }

    fn wedged(&mut self, worker: &str) {
        self.error(format!("the worker {worker} blocks its thread and did not stop"));
    }

    fn disabled(&mut self, engine: &Parts) {
        let is_disabled = |worker: &WorkerStats| worker.status == Some(WorkerStatus::Disabled);
        for (pool, entry) in engine.pools.iter().zip(&engine.shared.process.pools) {
            let workers = pool.admin().worker_stats();
            if workers.iter().filter(|worker| is_disabled(worker)).count() < pool.stats().configured
            {
                continue;
            }
            let name = &entry.name;
            self.error(format!("every worker of the pool {name:?} was disabled: its handlers panicked more often than `restarts` allows"));
        }
    }

    /// Waits until outputs and dead letters have stored all that they accepted, concurrently; but
    /// dead letters come after outputs that may reject an event, because a rejected event becomes a
    /// dead letter.
    async fn flush(&mut self, engine: &Parts) {
        self.see_off(engine);
        let outputs = engine.shared.egress.outputs.at_work();
        let mut finishes = std::mem::replace(&mut self.finishes, Tasks::new());
        for output in &*engine.shared.egress.outputs.list() {
            let sink = output.sink.clone();
            finishes.spawn(sink.describe(), async move { sink.finish().await });
        }
        let mut letters = Some(engine.shared.egress.dead_letters.store.clone());
        // Also after all outputs if letters are replayed: the events that these store end replays.
        let may_reject = outputs.iter().any(|output| output.rejecting.is_some())
            || engine.shared.replaying.is_some();
        loop {
            self.look_at_phase(engine);
            self.look_at_trouble(engine);
            if letters.is_some() && gives_back(engine, finishes.count()) {
                self.gave_back_outputs = true;
                finishes = Tasks::new();
            }
            let rejects = may_reject && !finishes.is_empty() && !self.waited(REMOTE_LET_GO);
            if let Some(store) = letters.take_if(|_| !rejects) {
                finishes.spawn(store.describe(), async move { store.finish().await });
            }
            if self.waited(OUTPUTS_LET_GO) {
                self.left_in_trouble(engine);
                return self.left(&finishes, "what it had accepted was not stored");
            }
            tokio::select! {
                finished = finishes.next() => match finished {
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(error))) => self.error(error.to_string()),
                    Some(Err((name, error))) => self.error(format!("{name}: storing failed: {error}")),
                    None if letters.is_none() => return,
                    None => {}
                },
                () = self.next_look() => {}
            }
        }
    }

    /// Ends a run that waits for nothing but outputs that do not get on.
    fn look_at_trouble(&mut self, engine: &Parts) {
        if self.at.stopped.is_none()
            && let Some(reason) = self.long_trouble(engine)
        {
            self.error(reason);
            self.control.stop_now();
            self.look_at_phase(engine);
        }
    }

    /// Records why outputs did not store the events that they had accepted, if they know.
    fn left_in_trouble(&mut self, engine: &Parts) {
        for output in engine.shared.egress.outputs.at_work() {
            if let Some(trouble) = output.sink.trouble() {
                self.error(format!("the output {:?} is {}", output.name, trouble_text(&trouble)));
            }
        }
    }

    /// Stores the positions of inputs for the last time: after outputs and dead letters, so that
    /// their stored events count as done.
    async fn commit(&mut self, engine: &Parts) -> Vec<PositionsReport> {
        let commits = std::mem::replace(&mut self.commits, Commits::new()).end().await;
        let mut last = Tasks::new();
        for commit in commits.iter().filter(|commit| !commit.is_made) {
            let committer = commit.committer.clone();
            last.spawn(&*commit.input, async move { committer.commit().await });
        }
        loop {
            self.look_at_phase(engine);
            if self.waited(COMMITS_LET_GO) {
                self.left(&last, "its positions were not stored");
                break;
            }
            tokio::select! {
                committed = last.next() => match committed {
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(error))) => self.error(error.to_string()),
                    Some(Err((name, error))) => self.error(format!("{name}: storing its positions failed: {error}")),
                    None => break,
                },
                () = self.next_look() => {}
            }
        }
        let report = |LastCommit { input, committer, is_made }| {
            let (standing, partitions) = (committer.standing(), committer.partitions());
            if !is_made {
                committer.end();
            }
            PositionsReport { input: input.to_string(), standing, partitions }
        };
        commits.into_iter().map(report).collect()
    }

    fn report(mut self, engine: &Parts, stats: Vec<PoolStats>) -> RunReport {
        let shared = &engine.shared;
        let ledger = &shared.ledger;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Acquire);
        let counts = ledger.counts();
        let outcomes = counts.outcomes;
        // Events that a wedged worker or a given-up output still holds count as refused: they were
        // not confirmed.
        let (mut refused, mut given_back) = (outcomes.refused, outcomes.given_back);
        let rest = if self.gave_back_outputs { &mut given_back } else { &mut refused };
        *rest += counts.unsettled();
        let lost_outputs = load(&ledger.lost_outputs);
        let refused_parked = shared.process.parked.refused();
        if refused_parked > 0 {
            self.error(format!(
                "{} refused, because no more may wait behind parked keys",
                plural(refused_parked as usize, "event")
            ));
        }
        if lost_outputs > 0 {
            self.error(format!(
                "{} acknowledged before the results were lost",
                plural(lost_outputs as usize, "event")
            ));
        }
        let processes: u64 =
            shared.process.handlers.iter().map(|handler| handler.config.factory.restarts()).sum();
        let slowest_keys = ledger.slowest().into_iter().map(|(line, longest)| SlowKey {
            key: line.key.to_string(),
            handler: shared.process.handlers[line.handler as usize].name.to_string(),
            longest,
        });
        let given_anew: u64 =
            shared.process.handlers.iter().map(|handler| handler.config.factory.unanswered()).sum();
        RunReport {
            taken: counts.taken,
            handled: outcomes.handled,
            ignored: outcomes.ignored,
            dead_lettered: outcomes.dead_lettered,
            refused,
            revoked: outcomes.revoked,
            given_back,
            parked: self.left_parked + refused_parked,
            retried: shared.process.pools.iter().map(|pool| load(&pool.further_attempts)).sum(),
            repeated_at_most: load(&ledger.unanswered)
                + given_anew
                + shared.egress.outputs.unanswered(),
            restarts: stats.iter().map(|stats| stats.restarts).sum::<u64>() + processes,
            out_of_order: load(&ledger.out_of_order),
            lost_outputs,
            elapsed: self.at.started.elapsed(),
            latency: ledger.latency([0.5, 0.99, 0.999]).map(Duration::from_micros),
            peak_queued: ledger.queued.most(),
            peak_in_flight_bytes: shared.inputs.peak_in_flight(),
            peak_rss_bytes: peak_rss_bytes(),
            slowest_keys: slowest_keys.collect(),
            dead_letters_by_reason: ledger.letters.by_reason(),
            pools: shared
                .process
                .pools
                .iter()
                .zip(stats)
                .enumerate()
                .map(|(place, (pool, stats))| PoolReport {
                    name: pool.name.to_string(),
                    workers: stats.configured,
                    handled: stats.handled,
                    failed_attempts: load(&pool.failed_attempts),
                    dead_lettered: ledger.letters.of_pool(place),
                    restarts: stats.restarts,
                })
                .collect(),
            inputs: shared.inputs.report(),
            outputs: shared.egress.outputs.report(),
            positions: Vec::new(),
            dead_letters: shared.egress.dead_letters.store.describe(),
            warnings: warnings(engine, &self.control),
            errors: self.errors,
        }
    }
}

/// Warnings about handlers, outputs and dead letters that an operator should know.
fn warnings(engine: &Parts, control: &Control) -> Vec<String> {
    let handlers = control.handler_views();
    let mut warnings: Vec<_> = handlers.iter().filter_map(HandlerView::told_without_key).collect();
    warnings.extend(engine.shared.egress.outputs.remarks());
    let letters = &engine.shared.egress.dead_letters.store;
    warnings.extend(letters.remark().map(|what| format!("{}: {what}", letters.describe())));
    warnings
}

/// True if this many outputs are left and none of them makes progress, after a stop that need not
/// wait for them. Events that were acknowledged before their outputs are stored are not delivered
/// again.
fn gives_back(engine: &Parts, left: usize) -> bool {
    let mut handlers = engine.shared.process.handlers.iter();
    if handlers.any(|handler| handler.config.ack == AckWhen::OnSuccess) {
        return false;
    }
    let outputs = engine.shared.egress.outputs.at_work();
    let stuck = outputs.iter().filter_map(|output| output.sink.trouble());
    let stuck = stuck.filter(|trouble| trouble.idle >= STUCK).count();
    left > 0 && stuck >= left && engine.shared.inputs.gives_back_all()
}

/// An output or the dead letters that cannot store any more: whatever is handled from
/// now on would be refused.
fn stuck_output(engine: &Parts) -> Option<String> {
    let outputs = engine.shared.egress.outputs.list();
    let outputs = outputs.iter().map(|output| output.sink.failure());
    let dead_letters = engine.shared.egress.dead_letters.store.failure();
    outputs.chain([dead_letters]).flatten().next().map(|error| error.to_string())
}

/// Pools that have ended by themselves, because an event failed for good, and why.
fn stopped_pools(engine: &Parts) -> Vec<(Name, ExitReason)> {
    let pools = engine.shared.process.pools.iter().zip(&engine.pools);
    let end = |pool: &SharedPool| pool.erase().exit_reason().filter(has_failed);
    pools.filter_map(|(settings, pool)| Some((settings.name, end(pool)?))).collect()
}

fn has_failed(end: &ExitReason) -> bool {
    matches!(end, ExitReason::Failed { .. })
}

/// Events behind parked keys, if the run is stopped immediately.
fn parked_now(engine: &Parts) -> u64 {
    if engine.shared.process.parked.any() {
        standstill::look_at_keys(engine);
    }
    engine.shared.process.parked.counts().events
}

type Intakes = Tasks<Ended>;

/// Begins to read the inputs that were added.
fn begin(engine: &Parts, intakes: &mut Intakes, commits: &mut Commits) {
    let mut arrivals = engine.shared.inputs.arrivals();
    commits.begin(&engine.shared.inputs, &mut arrivals);
    for arrival in arrivals {
        let pools: Vec<JobAddress> = engine.pools.iter().map(|pool| pool.address()).collect();
        let label = engine.shared.inputs.label(arrival.place);
        let managed = engine.managed.clone();
        let intake = InputReader::new(engine.shared.clone(), arrival, pools, managed);
        intakes.spawn(&*label, intake.run(engine.phase.subscribe()));
    }
}

type Stops = Tasks<(usize, StopReport<PoolJob>)>;

fn stop_pools(engine: &Parts, stops: &mut Stops, patience: Duration) {
    for (place, pool) in engine.pools.iter().enumerate() {
        let (name, pool) = (engine.shared.process.pools[place].name, pool.clone());
        stops.spawn(&*name, async move { (place, pool.stop(Stop::within(patience)).await) });
    }
}

fn ticks() -> Interval {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
