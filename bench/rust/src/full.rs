//! Workload E: resident memory with all inboxes full and all handlers stuck, asked of a process
//! that has done nothing else, as an allocator keeps what others have freed.
//!
//! Resident is what the kernel counts page by page (`smaps_rollup`); the figure in `status` is
//! the same, but as an estimate that leaves out up to some pages for each thread. What it was
//! before is taken before the workers start, so that an inbox that is allocated with its worker
//! counts as one that grows.

use std::{fs, sync::Arc, thread, time::Duration};

use tokio::sync::Notify;

use crate::{
    Failure,
    message::Payload,
    route::Route,
    stage::Stage,
    system::{MAILBOX, System, To},
    task::Task,
};

const WORKERS: usize = 256;
/// Bytes of a message.
const PARCEL: usize = 200;
/// The least part of the room that must have been accepted for the inboxes to be called full.
const FULL_FROM: f64 = 0.99;
/// What is still on its way to a worker is there after this long.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

/// Of 200 bytes, and the sequence number that stands in them is its key.
struct Parcel([u64; PARCEL / 8]);

const _: () = assert!(size_of::<Parcel>() == PARCEL);

impl Payload for Parcel {
    fn key(&self) -> u64 {
        self.0[0]
    }
}

fn parcel(seq: usize) -> Parcel {
    Parcel(std::hint::black_box([seq as u64; PARCEL / 8]))
}

/// Its handler never ends.
struct Stuck(Arc<Notify>);

impl Task for Stuck {
    type Message = Parcel;

    const WAITS: bool = true;

    async fn take(&mut self, parcel: Parcel) -> u64 {
        self.0.notified().await;
        std::hint::black_box(parcel.0[1])
    }
}

/// What memory has grown by, over what the messages have in bytes.
pub fn run<S: System>() -> Result<f64, Failure> {
    let stage = S::Stage::new()?;
    // The code of both ends is in memory before, and not part of the growth.
    let warm = fill::<S>(&stage, 2)?;
    let before = resident()?;
    let (accepted, held) = fill::<S>(&stage, WORKERS)?;
    let growth = resident()? - before;
    if (accepted as f64) < (WORKERS * MAILBOX) as f64 * FULL_FROM {
        return Err(format!("the inboxes took no more than {accepted} messages").into());
    }
    drop((warm, held));
    Ok(growth / (accepted * PARCEL) as f64)
}

/// Bytes in memory, once all is quiet.
fn resident() -> Result<f64, Failure> {
    thread::sleep(SETTLED_AFTER);
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).ok_or("no Rss")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1_024.0)
}

/// Fills the inboxes, and says how many messages they and their workers took; a system without a
/// bound takes no more than one with inboxes of [`MAILBOX`] would.
fn fill<S: System>(stage: &S::Stage, workers: usize) -> Result<(usize, S::To<Stuck>), Failure> {
    let gate = Arc::new(Notify::new());
    let make = move |_worker| Stuck(gate.clone());
    let mut to = stage.block_on(S::start(stage, workers, make, Route::turns()))?;
    let room = workers * (MAILBOX + 1);
    let (mut accepted, mut seen) = (0, usize::MAX);
    // Again until nothing fits any more, as each worker takes one more in hand.
    while accepted < room && accepted != seen {
        seen = accepted;
        let mut refused = 0;
        while accepted < room && refused < workers {
            if to.try_send(parcel(accepted)) {
                (accepted, refused) = (accepted + 1, 0);
            } else {
                refused += 1;
            }
        }
        thread::sleep(SETTLED_AFTER);
    }
    Ok((accepted, to))
}
