//! How much memory a pool takes when it is full: all inboxes, of messages of the size that
//! estimates are made for, behind handlers that never end. Measured in a process that has not run
//! anything else, as an allocator keeps what others have freed.

use std::{collections::VecDeque, convert::Infallible, future::pending, time::Duration};

use greenroom::{PoolEvents, prelude::*};

use super::{load::Load, machine};

/// The average message that estimates of memory are for, in bytes.
pub(super) const MESSAGE: usize = 200;
/// What the pool needs for a message beside its own bytes, in about.
const ENVELOPE: u64 = 16;
/// More than this part of what is available is not filled.
const SAFE_PART: u64 = 2;
/// Messages handed over at once.
const CHUNK: usize = 1_024;
/// Workers take one message each in hand, which makes room for one more: until then.
const TAKEN_AFTER: Duration = Duration::from_millis(100);

/// The growth of this process, in bytes; `None` where the system does not tell, or where
/// there is not memory enough.
///
/// # Errors
/// No threads, or a pool that did not start.
pub(super) fn measure(load: &Load) -> Result<Option<u64>, String> {
    let (workers, inbox) = (load.workers, load.inbox);
    let needed = (workers as u64 * inbox as u64).saturating_mul(MESSAGE as u64 + ENVELOPE);
    if machine::available().is_some_and(|available| needed > available / SAFE_PART) {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    runtime.block_on(async {
        // The code and the runtime's own are in memory before, and not part of the growth.
        let warm = fill(1, 1).await?;
        let before = machine::resident();
        let full = fill(workers, inbox).await?;
        let after = machine::resident();
        for pool in [warm, full] {
            pool.stop(Stop::within(Duration::ZERO)).await;
        }
        Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before)))
    })
}

type Parcel = [u8; MESSAGE];

/// Its handler never ends.
struct Stuck;

impl Actor for Stuck {
    type Message = Parcel;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, parcel: Parcel, _: &mut Context<Self>) -> Result<(), Infallible> {
        pending::<()>().await;
        std::hint::black_box(parcel);
        Ok(())
    }
}

async fn fill(workers: usize, inbox: usize) -> Result<Pool<Stuck>, String> {
    let pool = Pool::new(|_slot| Stuck).quick_factory().pool_events(PoolEvents::off());
    let pool = pool.workers(workers).mailbox(inbox).spawn().await;
    let pool = pool.map_err(|error| error.to_string())?;
    let mut parcels = VecDeque::new();
    loop {
        let mut accepted = 0;
        loop {
            parcels.resize(CHUNK, std::hint::black_box([7; MESSAGE]));
            match pool.try_send_many(&mut parcels) {
                Ok(0) | Err(_) => break,
                Ok(more) => accepted += more,
            }
        }
        if accepted == 0 {
            return Ok(pool);
        }
        tokio::time::sleep(TAKEN_AFTER).await;
    }
}
