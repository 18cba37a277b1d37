//! From a coordinator and the settings of its pool to both of them running.
//!
//! ```text
//! coordinator.started ─▶ the pool is made ─▶ the coordinator listens ─▶ workers start ─▶ each hears of the other's end
//!        │ fails                                                             │ none does
//!        └──▶ spawn returns the error, nothing is left running ◀─────────────┘
//! ```

use std::{convert::Infallible, fmt, hash::Hash, sync::Arc};

use greenroom_queue::discard::discard;
use tokio::time::Instant;

use super::{
    CoordinatedPool, Coordination, Coordinator, Setup, coordinated::Commands,
    coordination::Saturated, driver::CoordinatorDriver, notice_queue::NoticeQueue,
};
use crate::{
    Actor, Address, AddressOf, Pool, PoolAdmin, PoolBuilder, SpawnError, Stop,
    any_address::Erased,
    life,
    pool::{
        builder::start, core::Core, panic_message::panic_message, stop::run::stop,
        worker::CatchUnwind,
    },
};

/// Turns the coordinator's address into the one that urgent messages go to. With it, both
/// message types are the same.
type Diversion<A, C> = fn(&Commands<A, C>) -> AddressOf<A>;

/// A pool with a coordinator that is being set up. Nothing runs before [`spawn`](Self::spawn).
#[must_use = "a builder does nothing until it is spawned"]
pub struct CoordinatedBuilder<A: Actor, C: Coordinator<A>, K = Infallible> {
    builder: PoolBuilder<A, K>,
    coordinator: C,
    /// Present if urgent messages go to the coordinator.
    urgent: Option<Diversion<A, C>>,
}

impl<A: Actor, C: Coordinator<A>, K: Hash + Eq + Send + Sync + 'static>
    CoordinatedBuilder<A, C, K>
{
    pub(in crate::pool) fn new(builder: PoolBuilder<A, K>, coordinator: C) -> Self {
        Self { builder, coordinator, urgent: None }
    }

    /// Gives urgent messages that are sent to the pool's address to the coordinator, and never
    /// to a worker. Without this, they are urgent work. For a coordinator that has the
    /// workers' message type.
    ///
    /// The address of a single worker is not the pool's: an urgent message sent
    /// there is for the worker.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// # use greenroom::{Class, Envelope, PoolAdmin, coordinator::Coordinator, prelude::*};
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = &'static str; type Error = Infallible;
    /// # async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<Self::Reply, Infallible> { Ok("a clerk") } }
    /// # struct Boss; impl Coordinator<Clerk> for Boss { type Command = u8; type Reply = &'static str; type Error = Infallible;
    /// # async fn command(&mut self, _: u8, _: &PoolAdmin<Clerk>, _: &mut Context<Self>) -> Result<Self::Reply, Infallible> { Ok("the boss") } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).coordinator(Boss).coordinator_takes_urgent().spawn().await?;
    /// assert_eq!(pool.call(7).await?, "a clerk");
    /// assert_eq!(pool.call_with(7, Envelope::urgent()).await?, "the boss");
    /// # Ok(()) }
    /// ```
    pub fn coordinator_takes_urgent(mut self) -> Self
    where
        C: Coordinator<A, Command = A::Message, Reply = A::Reply, Error = A::Error>,
    {
        self.urgent = Some(Address::clone);
        self
    }

    /// Starts the coordinator, then the workers, as [`PoolBuilder::spawn`] does.
    ///
    /// # Errors
    /// [`SpawnError::CoordinatorFailed`] with the error of the coordinator's
    /// [`started`](Coordinator::started), or because that panicked; and as `PoolBuilder::spawn`.
    /// Nothing is left running then.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing running.
    pub async fn spawn(self) -> Result<CoordinatedPool<A, C>, SpawnError> {
        let Self { builder, mut coordinator, urgent } = self;
        let mut setup = Setup::new();
        if let Err(failed) = begin(&mut coordinator, &mut setup, builder.pool_name()).await {
            discard(coordinator);
            return Err(failed);
        }
        let core = setup.apply(builder).into_core()?;
        let driver = open(&core, coordinator, urgent).await?;
        let open = Open(Some(&driver));
        if let Err(nobody) = start(&core).await {
            stop(driver.clone(), Stop::Now).await;
            return Err(nobody);
        }
        open.defuse();
        life::monitor(&core.clone().any(), &driver.clone().any());
        Ok(CoordinatedPool::new(Pool::spawned(core), driver))
    }
}

/// Asks the coordinator what its pool is to be.
async fn begin<A: Actor, C: Coordinator<A>>(
    coordinator: &mut C,
    setup: &mut Setup<A>,
    pool: &str,
) -> Result<(), SpawnError> {
    let error = match CatchUnwind::new(coordinator.started(setup)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.into(),
        Err(panic) => {
            let why = format!("the `started` hook panicked: {}", panic_message(&*panic));
            discard(panic);
            why.into()
        }
    };
    Err(SpawnError::CoordinatorFailed { pool: pool.to_owned(), error })
}

/// Starts the coordinator's actor, and tells the pool about it.
async fn open<A: Actor, C: Coordinator<A>, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    coordinator: C,
    urgent: Option<Diversion<A, C>>,
) -> Result<Arc<Core<CoordinatorDriver<A, C>, Infallible>>, SpawnError> {
    let (notices, notifier) = (Arc::<NoticeQueue>::default(), core.clone().any());
    let pool = PoolAdmin::new(core.clone());
    let driver = CoordinatorDriver::new(coordinator, pool, notifier.clone(), notices.clone());
    let name = format!("{}-coordinator", core.settings.config.name);
    let driver = Pool::one(driver).name(name).spawn_core().await?;
    let address = Address::new(driver.clone());
    let coordination = Coordination {
        coordinator: driver.clone().any(),
        notifier,
        notices,
        urgent: urgent.map(|urgent| urgent(&address)),
        _alive: Box::new(address),
        saturated: Saturated::new(Instant::now()),
    };
    let _ = core.controllers.coordination.set(coordination);
    Ok(driver)
}

/// Ends the coordinator when the spawn of its pool fails or is cancelled. Its address, which the
/// pool holds, and the pool, which it holds, would keep each other otherwise.
struct Open<'a, A: Actor, C: Coordinator<A>>(
    Option<&'a Arc<Core<CoordinatorDriver<A, C>, Infallible>>>,
);

impl<A: Actor, C: Coordinator<A>> Open<'_, A, C> {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl<A: Actor, C: Coordinator<A>> Drop for Open<'_, A, C> {
    fn drop(&mut self) {
        if let Some(driver) = self.0 {
            driver.clone().stop_behind(Stop::Now);
        }
    }
}

impl<A: Actor, C: Coordinator<A>, K> fmt::Debug for CoordinatedBuilder<A, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatedBuilder").finish_non_exhaustive()
    }
}
