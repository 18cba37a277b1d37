//! Random programs: many of them, on all cores, each in its own thread with its own virtual clock.
//!
//! ```text
//! GREENROOM_PROGRAMS ─▶ a thread for each core ─▶ program ─▶ a thread with a paused clock
//! GREENROOM_SEED        with a seed of its own                 │
//!                       as small as possible, and its seed ◀───┴──▶ Ok
//! ```
//!
//! A failure names the seed and the number of programs that repeat it. If a number of programs was
//! requested, progress is reported every few seconds on standard error.

use std::{
    any::Any,
    num::NonZero,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};
use tokio::runtime::{Builder, Runtime};

use crate::seed::{from_environment, seed, tell};

/// By the real clock. Programs take milliseconds; on a busy machine, some have taken more than ten
/// seconds.
const HANGS: Duration = Duration::from_secs(60);

/// Programs per test, unless `GREENROOM_PROGRAMS` is set.
const PROGRAMS: u32 = 150;

/// The interval of progress reports.
const TOLD: Duration = Duration::from_secs(10);

/// How long to shrink a failed program, in milliseconds.
const SHRINKS: u32 = 40_000;

/// Runs a program in its own thread, so that the real clock catches one that spins without virtual
/// time passing.
///
/// # Errors
/// The program's error; or it panicked, or did not end within a minute.
///
/// # Panics
/// The thread cannot be started.
pub fn in_a_thread(
    run: impl FnOnce(&Runtime) -> Result<(), TestCaseError> + Send + 'static,
) -> Result<(), TestCaseError> {
    let (tell, told) = mpsc::channel();
    let program = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let ran = runtime.map_err(|error| TestCaseError::fail(format!("no runtime: {error}")));
        let _ = tell.send(ran.and_then(|runtime| run(&runtime)));
    });
    match told.recv_timeout(HANGS) {
        Ok(ran) => ran,
        Err(RecvTimeoutError::Timeout) => Err(TestCaseError::fail("the run hangs")),
        Err(RecvTimeoutError::Disconnected) => {
            let panic = program.join().err().map_or_else(String::new, |panic| words(&*panic));
            Err(TestCaseError::fail(format!("the run panicked: {panic}")))
        }
    }
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "something".to_owned())
}

/// Tries as many programs as `GREENROOM_PROGRAMS` says, or else 150, from the seed in
/// `GREENROOM_SEED`.
///
/// # Panics
/// If one of them fails. The message has the seed, and the program, as small as possible.
pub fn try_all<S>(
    programs: impl Fn() -> S + Sync,
    tried: impl Fn(S::Value) -> Result<(), TestCaseError> + Sync,
) where
    S: Strategy,
{
    let asked = from_environment("GREENROOM_PROGRAMS");
    let (all, seed) = (asked.unwrap_or(PROGRAMS), seed());
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u32;
    let (threads, done) = (threads.clamp(1, all.max(1)), AtomicU32::new(0));
    quiet_on_purpose();
    let each = |thread: u32| {
        let cases = all / threads + u32::from(thread < all % threads);
        let seed = seed.wrapping_add(u64::from(thread));
        try_some((seed, cases, threads), &programs(), |program| {
            let result = tried(program);
            done.fetch_add(1, Ordering::Relaxed);
            result
        })
    };
    let failure = thread::scope(|scope| {
        let named = |thread: u32| thread::Builder::new().name(format!("programs-{thread}"));
        let each = &each;
        let running: Vec<_> = (0..threads)
            .map(|thread| named(thread).spawn_scoped(scope, move || each(thread)))
            .collect();
        if asked.is_some() {
            tell_until(&done, all, || running.iter().flatten().all(|thread| thread.is_finished()));
        }
        let ended = running.into_iter().map(|thread| match thread.map(|thread| thread.join()) {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) => Err("a thread of programs panicked".to_owned()),
            Err(error) => Err(format!("no thread for programs: {error}")),
        });
        ended.collect::<Vec<_>>().into_iter().find_map(Result::err)
    });
    if let Some(failure) = failure {
        panic!("{failure}");
    }
}

/// Tries this many programs from one seed, in one of this many threads.
fn try_some<S: Strategy>(
    (seed, cases, threads): (u64, u32, u32),
    programs: &S,
    tried: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> Result<(), String> {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: SHRINKS,
        ..ProptestConfig::default()
    };
    TestRunner::new(config).run(programs, tried).map_err(|error| {
        // The first thread has this seed, and tries as many programs as this one did.
        let programs = cases.saturating_mul(threads);
        format!("GREENROOM_SEED={seed} GREENROOM_PROGRAMS={programs} repeats it: {error}")
    })
}

fn tell_until(done: &AtomicU32, all: u32, is_over: impl Fn() -> bool) {
    let (began, mut told) = (Instant::now(), Instant::now());
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    while !is_over() {
        thread::sleep(Duration::from_millis(50));
        if told.elapsed() >= TOLD {
            told = Instant::now();
            let (done, so_far) = (done.load(Ordering::Relaxed), began.elapsed().as_secs());
            tell(&format!("{test}: {done} of {all} programs in {so_far} s"));
        }
    }
    let (done, took) = (done.load(Ordering::Relaxed), began.elapsed().as_secs_f64());
    tell(&format!("{test}: {done} programs in {took:.1} s"));
}

/// Handlers and sources panic on purpose: programs run in unnamed threads, tests in named ones.
fn quiet_on_purpose() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if thread::current().name().is_some() {
                usual(panic);
            }
        }));
    });
}
