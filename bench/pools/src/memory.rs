//! Workload E: resident memory. Each figure comes from a process of its own, as an allocator
//! keeps what others have freed.
//!
//! Resident is what the kernel counts page by page (`smaps_rollup`; the figure in `status`
//! is an estimate). The allocator is the system's, which does not return all that is
//! freed: growth after a drain contains what it keeps for the next time, and so is an
//! upper bound of what the pool holds.

use std::{
    any::Any, convert::Infallible, process::Command, str::FromStr, sync::Arc, thread,
    time::Duration,
};

use greenroom::prelude::*;
use tokio::sync::{Notify, mpsc};

use crate::{
    Failure,
    channels::{self, MAILBOX},
    keyed,
    keys::Keys,
    message::{Counters, Message},
    rounds::Side,
    stage::{Stage, Threads},
    work::Work,
};

/// Workers of the full pool.
const FULL_WORKERS: usize = 256;
/// Bytes of its messages.
const PARCEL: usize = 200;
/// The least part of the bound that must have been accepted for the pool to be called full.
const FULL_FROM: f64 = 0.99;
/// Keys that are used before anything is measured.
const WARM_UP_KEYS: u64 = 100_000;
/// Keys whose growth is measured.
const DISTINCT_KEYS: u64 = 10_000_000;
/// Workers that wait for their first message.
const IDLE_WORKERS: usize = 4_096;
/// What is still on its way (a worker that lies down, a clock that tidies up)
/// is done after this long.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

const MIB: f64 = (1 << 20) as f64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// 256 inboxes of 1,000 messages of 200 bytes, all full; growth as a multiple
    /// of what the messages take.
    Full,
    /// Ten million distinct keys, each once, after a warm-up with a hundred
    /// thousand; growth after the drain.
    Keys,
    /// Ten million further keys: growth that goes on with the keys shows here.
    KeysAgain,
    /// Workers that have nothing to do; growth for each.
    Idle,
}

const NAMES: [(&str, Memory); 4] = [
    ("full", Memory::Full),
    ("keys", Memory::Keys),
    ("keys-again", Memory::KeysAgain),
    ("idle", Memory::Idle),
];

impl Memory {
    fn name(self) -> &'static str {
        NAMES.iter().find(|(_, memory)| *memory == self).map_or("", |(name, _)| name)
    }

    pub fn unit(self) -> &'static str {
        match self {
            Self::Full => "payload",
            Self::Keys | Self::KeysAgain => "MiB",
            Self::Idle => "B/worker",
        }
    }
}

impl FromStr for Memory {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, memory)| *memory)
            .ok_or_else(|| format!("{text} is no figure of memory").into())
    }
}

/// Measures in a new process.
pub fn in_child(memory: Memory, side: Side) -> Result<f64, Failure> {
    let mut child = Command::new(std::env::current_exe()?);
    let ran = child.args(["memory", memory.name(), side.name()]).output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).trim().into());
    }
    Ok(String::from_utf8(ran.stdout)?.trim().parse()?)
}

/// Measures in this process, which must not have run anything else.
pub fn measure(memory: Memory, side: Side) -> Result<f64, Failure> {
    let stage = Stage::new(Threads::Two)?;
    match memory {
        Memory::Full => full(&stage, side),
        Memory::Keys => keys(&stage, side, 1),
        Memory::KeysAgain => keys(&stage, side, 2),
        Memory::Idle => idle(&stage, side),
    }
}

/// Bytes in memory, once all is quiet.
fn resident() -> Result<f64, Failure> {
    kernel_says("/proc/self/smaps_rollup", "Rss:")
}

fn resident_by_estimate() -> Result<f64, Failure> {
    kernel_says("/proc/self/status", "VmRSS:")
}

fn kernel_says(path: &str, name: &str) -> Result<f64, Failure> {
    thread::sleep(SETTLED_AFTER);
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("{path} has no {name}"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1_024.0)
}

type Parcel = [u8; PARCEL];

/// Its handler never ends.
struct Stuck(Arc<Notify>);

impl Actor for Stuck {
    type Message = Parcel;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, parcel: Parcel, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        self.0.notified().await;
        std::hint::black_box(parcel);
        Ok(())
    }
}

fn full(stage: &Stage, side: Side) -> Result<f64, Failure> {
    // The code of both ends is in memory before, and not part of the growth.
    let warm = Inboxes::spawn(stage, side, 2)?;
    warm.fill()?;
    let before = resident()?;
    let inboxes = Inboxes::spawn(stage, side, FULL_WORKERS)?;
    over_payload(&inboxes, before, resident)
}

/// The same as the comparison of systems asks for it: the kernel's estimate, from what there was
/// before the first message.
pub fn full_as_compared(side: Side) -> Result<f64, Failure> {
    let stage = Stage::new(Threads::Two)?;
    let inboxes = Inboxes::spawn(&stage, side, FULL_WORKERS)?;
    over_payload(&inboxes, resident_by_estimate()?, resident_by_estimate)
}

/// Fills them, and gives the growth as a multiple of what was accepted.
fn over_payload(
    inboxes: &Inboxes,
    before: f64,
    now: impl Fn() -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    let accepted = inboxes.fill()?;
    if (accepted as f64) < (FULL_WORKERS * MAILBOX) as f64 * FULL_FROM {
        return Err(format!("the pool was full with {accepted} messages").into());
    }
    Ok((now()? - before) / (accepted * PARCEL) as f64)
}

/// Inboxes whose workers never end with the first message.
enum Inboxes {
    Channels(Vec<mpsc::Sender<Parcel>>),
    Pool(Pool<Stuck>),
}

impl Inboxes {
    fn spawn(stage: &Stage, side: Side, workers: usize) -> Result<Self, Failure> {
        let gate = Arc::new(Notify::new());
        Ok(match side {
            Side::Baseline => {
                let senders = (0..workers).map(|_| stuck_task(stage, gate.clone()));
                Self::Channels(senders.collect::<Result<_, _>>()?)
            }
            Side::Greenroom => {
                let pool = Pool::new(move |_slot| Stuck(gate.clone())).quick_factory();
                Self::Pool(stage.block_on(pool.workers(workers).mailbox(MAILBOX).spawn())??)
            }
        })
    }

    /// Says how many messages they and their workers took.
    fn fill(&self) -> Result<usize, Failure> {
        match self {
            Self::Channels(senders) => {
                // First one for each worker's hand, so that filling need not wait for each of them.
                if senders.iter().any(|sender| sender.try_send(parcel()).is_err()) {
                    return Err("an empty inbox accepts nothing".into());
                }
                thread::sleep(SETTLED_AFTER);
                let fill =
                    |sender: &mpsc::Sender<_>| until_full(|| sender.try_send(parcel()).is_ok());
                Ok(senders.len() + senders.iter().map(fill).sum::<usize>())
            }
            Self::Pool(pool) => {
                let mut accepted = 0;
                // Again until nothing fits any more, as each worker takes one more in hand.
                loop {
                    match until_full(|| pool.try_send(parcel()).is_ok()) {
                        0 => return Ok(accepted),
                        more => accepted += more,
                    }
                    thread::sleep(SETTLED_AFTER);
                }
            }
        }
    }
}

fn parcel() -> Parcel {
    std::hint::black_box([7; PARCEL])
}

fn stuck_task(stage: &Stage, gate: Arc<Notify>) -> Result<mpsc::Sender<Parcel>, Failure> {
    let (sender, mut inbox) = mpsc::channel(MAILBOX);
    stage.spawn(async move {
        while let Some(parcel) = inbox.recv().await {
            gate.notified().await;
            std::hint::black_box(parcel);
        }
    })?;
    Ok(sender)
}

fn until_full(mut try_send: impl FnMut() -> bool) -> usize {
    std::iter::from_fn(|| try_send().then_some(())).count()
}

/// The growth of the last of these passes, in MiB.
fn keys(stage: &Stage, side: Side, passes: u64) -> Result<f64, Failure> {
    let counters = Counters::new(keyed::WORKERS);
    let mut send = sender(stage, side, &counters)?;
    send(0, WARM_UP_KEYS)?;
    let (mut sent, mut growth) = (WARM_UP_KEYS, 0.0);
    for _ in 0..passes {
        let before = resident()?;
        send(sent, DISTINCT_KEYS)?;
        sent += DISTINCT_KEYS;
        growth = (resident()? - before) / MIB;
    }
    Ok(growth)
}

/// Sends a message for each of so many keys from the first on, and waits
/// until all have been handled.
type SendKeys<'a> = Box<dyn FnMut(u64, u64) -> Result<(), Failure> + 'a>;

fn sender<'a>(
    stage: &'a Stage,
    side: Side,
    counters: &'a Counters,
) -> Result<SendKeys<'a>, Failure> {
    Ok(match side {
        Side::Baseline => {
            let senders = channels::spawn(stage, counters, keyed::WORKERS, MAILBOX, Work::NONE)?;
            Box::new(move |first, count| {
                let producers = keyed::to_channels(&Keys::Distinct { first }, count, &senders);
                stage.time(producers, counters, first + count).map(drop)
            })
        }
        Side::Greenroom => {
            let pool = keyed::pool(stage, counters, Threads::Two)?;
            Box::new(move |first, count| {
                let producers = keyed::to_pool(&Keys::Distinct { first }, count, &pool.address());
                stage.time(producers, counters, first + count).map(drop)
            })
        }
    })
}

/// Does nothing, and has no state.
struct Nothing;

impl Actor for Nothing {
    type Message = Message;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, _: Message, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

fn idle(stage: &Stage, side: Side) -> Result<f64, Failure> {
    let warm = idlers(stage, side, 2)?;
    let before = resident()?;
    let idle = idlers(stage, side, IDLE_WORKERS)?;
    let growth = resident()? - before;
    drop((warm, idle));
    Ok(growth / IDLE_WORKERS as f64)
}

/// What keeps tasks and their inboxes.
type Held = Box<dyn Any>;

/// Starts workers that wait.
fn idlers(stage: &Stage, side: Side, workers: usize) -> Result<Held, Failure> {
    Ok(match side {
        Side::Baseline => {
            let idler = |_| {
                let (sender, mut inbox) = mpsc::channel::<Message>(MAILBOX);
                stage.spawn(async move { while inbox.recv().await.is_some() {} })?;
                Ok::<_, Failure>(sender)
            };
            Box::new((0..workers).map(idler).collect::<Result<Vec<_>, _>>()?)
        }
        Side::Greenroom => {
            let pool = Pool::new(|_slot| Nothing).quick_factory().workers(workers);
            Box::new(stage.block_on(pool.mailbox(MAILBOX).spawn())??)
        }
    })
}
