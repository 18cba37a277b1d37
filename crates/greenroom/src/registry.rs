//! Names to addresses, for actors that do not know one another.
//!
//! Prefer to pass an address along: it is typed when the program is compiled, and cannot
//! be missing. A registry is for lookups at run time: "the printer of the third floor",
//! a session by its id.
//!
//! The registry holds weak addresses. It keeps no actor alive, and a name is free again as soon as
//! its actor is gone. The entries of such names are swept when the registry has doubled, so a
//! registration costs constant time on average.

use std::{any::Any, collections::HashMap, sync::Arc};

use greenroom_queue::lock::Mutex;

use crate::{Actor, Address, AddressOf, AnyAddress, WeakAddress, any_address::Erased};

/// Names that a registry may hold before it looks for actors that are gone. Below this, a sweep is
/// not worth its time.
const FIRST_SWEEP: usize = 64;

/// The name belongs to a live actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {name} is taken")]
#[non_exhaustive]
pub struct NameTaken {
    /// The name.
    pub name: String,
    /// The holder of the name.
    pub holder: AnyAddress,
}

/// Why a name gave no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No live actor has this name.
    #[error("no live actor has the name {name}")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The actor of this name has another type.
    #[error("{name} is {registered}, not {wanted}")]
    OtherType {
        /// The requested name.
        name: String,
        /// The type of the address that was registered.
        registered: &'static str,
        /// The type of the requested address.
        wanted: &'static str,
    },
}

/// Names to typed addresses. A clone is the same registry.
///
/// ```
/// # use greenroom::{Registry, prelude::*, registry::FindError};
/// # struct Printer; impl Actor for Printer { type Message = String; type Reply = usize; type Error = ();
/// # async fn handle(&mut self, page: String, _: &mut Context<Self>) -> Result<usize, ()> { Ok(page.len()) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new();
/// let printer = Pool::new(|_slot| Printer).workers(1).spawn().await?;
/// registry.register("printer-3", &printer)?;
///
/// let found = registry.find::<Printer>("printer-3")?;
/// assert_eq!(found.call("a page".to_owned()).await, Ok(6));
///
/// drop((printer, found)); // names vanish with their actor
/// assert!(matches!(registry.find::<Printer>("printer-3"), Err(FindError::Unknown { .. })));
/// # Ok(()) }
/// ```
///
/// One for the whole process is a `static REGISTRY: LazyLock<Registry>` of the program's own.
#[derive(Clone, Default)]
pub struct Registry {
    names: Arc<Mutex<Names>>,
}

#[derive(Default)]
struct Names {
    entries: HashMap<Arc<str>, Registered, foldhash::quality::RandomState>,
    /// How many entries there were after the last sweep.
    after_sweep: usize,
}

/// All of it is weak: dropping an entry runs no user code.
struct Registered {
    any: AnyAddress,
    /// A `WeakAddress<M, R, E>`.
    typed: Arc<dyn Any + Send + Sync>,
    type_name: &'static str,
}

/// Pools that were seen under the lock, to be dropped after it: if this is the last reference to a
/// pool, its drop runs user code.
type LookedAt = Vec<Arc<dyn Erased>>;

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives an actor or a pool a name, until it is gone. One may have several names.
    ///
    /// # Errors
    /// The holder of the name, if a live actor has it; the same actor counts too.
    pub fn register<M, R, E>(
        &self,
        name: impl Into<Arc<str>>,
        address: &Address<M, R, E>,
    ) -> Result<(), NameTaken>
    where
        M: 'static,
        R: 'static,
        E: 'static,
    {
        let (name, entry) = (name.into(), Registered::new(address));
        self.locked(|names, seen| match names.holder(&name, seen) {
            Some(holder) => Err(NameTaken { name: name.to_string(), holder }),
            None => {
                names.entries.insert(name, entry);
                names.sweep_if_doubled(seen);
                Ok(())
            }
        })
    }

    /// The address behind a name: of a pool of `A`, or of any other with the same messages, replies
    /// and errors.
    ///
    /// # Errors
    /// No live actor has this name, or the holder is of another type.
    pub fn find<A: Actor>(&self, name: &str) -> Result<AddressOf<A>, FindError> {
        self.find_typed(name)
    }

    /// Like [`find`](Self::find), for callers that know the messages but not the actor.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn find_typed<M, R, E>(&self, name: &str) -> Result<Address<M, R, E>, FindError>
    where
        M: 'static,
        R: 'static,
        E: 'static,
    {
        let unknown = || FindError::Unknown { name: name.to_owned() };
        let (typed, registered) = self.entry(name).ok_or_else(unknown)?;
        let weak = typed.downcast::<WeakAddress<M, R, E>>().map_err(|_| FindError::OtherType {
            name: name.to_owned(),
            registered,
            wanted: std::any::type_name::<Address<M, R, E>>(),
        })?;
        weak.upgrade().ok_or_else(unknown)
    }

    /// Takes a name away from its holder, and returns the holder. The actor continues.
    pub fn remove(&self, name: &str) -> Option<AnyAddress> {
        let entry = self.locked(|names, _| names.entries.remove(name))?;
        Some(entry.any).filter(AnyAddress::is_alive)
    }

    /// The names of all live actors, in no order. Takes the lock for a time that
    /// grows with their number.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.locked(|names, seen| {
            names.sweep(seen);
            names.entries.keys().cloned().collect()
        })
    }

    /// The entry of a name, if its holder lives.
    fn entry(&self, name: &str) -> Option<(Arc<dyn Any + Send + Sync>, &'static str)> {
        self.locked(|names, seen| {
            let entry = names.entries.get(name).filter(|entry| entry.lives(seen))?;
            Some((entry.typed.clone(), entry.type_name))
        })
    }

    /// Acts under the lock, and drops the pools it has seen there after it.
    fn locked<T>(&self, act: impl FnOnce(&mut Names, &mut LookedAt) -> T) -> T {
        let mut seen = LookedAt::new();
        let done = act(&mut self.names.lock(), &mut seen);
        drop(seen);
        done
    }
}

impl Names {
    fn holder(&self, name: &str, seen: &mut LookedAt) -> Option<AnyAddress> {
        self.entries.get(name).filter(|entry| entry.lives(seen)).map(|entry| entry.any.clone())
    }

    fn sweep_if_doubled(&mut self, seen: &mut LookedAt) {
        if self.entries.len() >= FIRST_SWEEP.max(2 * self.after_sweep) {
            self.sweep(seen);
        }
    }

    fn sweep(&mut self, seen: &mut LookedAt) {
        self.entries.retain(|_, entry| entry.lives(seen));
        self.after_sweep = self.entries.len();
    }
}

impl Registered {
    fn new<M: 'static, R: 'static, E: 'static>(address: &Address<M, R, E>) -> Self {
        Self {
            any: address.erase(),
            typed: Arc::new(address.downgrade()),
            type_name: std::any::type_name::<Address<M, R, E>>(),
        }
    }

    fn lives(&self, seen: &mut LookedAt) -> bool {
        let Some(vtable) = self.any.living() else { return false };
        let lives = !vtable.is_closed();
        seen.push(vtable);
        lives
    }
}

impl_debug!([] Registry, |this| names: this.names());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, Context, Pool};

    struct Idle;

    impl Actor for Idle {
        type Message = ();
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a15_names_of_those_who_are_gone_are_swept_and_others_stay() {
        let registry = Registry::new();
        let stays = Pool::new(|_| Idle).workers(1).spawn().await.unwrap();
        for number in 0..FIRST_SWEEP {
            registry.register(format!("stays-{number}"), &stays).unwrap();
        }
        for number in 0..10 * FIRST_SWEEP {
            let goes = Pool::new(|_| Idle).workers(1).spawn().await.unwrap();
            registry.register(format!("goes-{number}"), &goes).unwrap();
        }
        let entries = || registry.names.lock().entries.len();
        assert!(entries() <= 2 * FIRST_SWEEP, "{} entries", entries());
        assert_eq!(registry.names().len(), FIRST_SWEEP);
        assert_eq!(entries(), FIRST_SWEEP);
        assert_eq!(registry.names.lock().after_sweep, FIRST_SWEEP, "the next is at twice as many");
    }
}
