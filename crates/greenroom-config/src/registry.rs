//! Kinds that come from several crates: an `enum` of [`options!`](crate::options) that is open.
//!
//! ```text
//! kind's folder ─▶ Listing ─┐                       ┌─▶ schema, reference page
//! kind's folder ─▶ Listing ─┼─▶ Registry<dyn Kind> ─┤
//! a user's own  ─▶ Listing ─┘                       └─▶ Chosen<dyn Kind>: its key, its options
//! ```
//!
//! A trait says what a program asks of a kind; the options of each kind implement it, and
//! [`kinds!`](crate::kinds) declares the registry. Price: a virtual call for each question, while a
//! configuration is read and carried out.

use std::{any::Any, fmt, ops::Deref, sync::Arc, sync::Mutex, sync::OnceLock};

use crate::{
    at::At,
    options::{Kinds, Options},
    record::Record,
    schema::{Group, Opt},
};

/// What can be asked of the options of any kind.
pub trait AnyOptions: Any + fmt::Debug + Send + Sync {
    /// For a cast to their type.
    fn as_any(&self) -> &dyn Any;

    /// Their table.
    fn group(&self) -> &'static Group;

    /// Whether they are the same. Those of another kind are not.
    fn equals(&self, other: &dyn AnyOptions) -> bool;

    /// As [`Options::differs`]. With those of another kind nothing is compared.
    fn differs(&self, other: &dyn AnyOptions) -> Vec<&'static str>;
}

impl<T: Options + PartialEq + fmt::Debug + Send + Sync + 'static> AnyOptions for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn group(&self) -> &'static Group {
        T::GROUP
    }

    fn equals(&self, other: &dyn AnyOptions) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn differs(&self, other: &dyn AnyOptions) -> Vec<&'static str> {
        let other = other.as_any().downcast_ref::<T>();
        other.map_or_else(Vec::new, |other| Options::differs(self, other))
    }
}

/// A trait whose implementors are kinds of one registry. [`kinds!`](crate::kinds) implements it.
pub trait Listed: 'static {
    /// The registry.
    fn registry() -> &'static Registry<Self>;

    /// The options, without what the trait adds.
    fn options(&self) -> &dyn AnyOptions;
}

/// A kind in a registry: its key, what it is for, and how its options are read.
#[derive(Debug)]
pub struct Listing<K: ?Sized + 'static> {
    opt: Opt,
    build: fn(&mut Record, &'static str, &mut At<'_>) -> Option<Arc<K>>,
    take_live: fn(&K, &K) -> Option<Arc<K>>,
}

impl<K: ?Sized> Clone for Listing<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized> Copy for Listing<K> {}

impl<K: ?Sized> Listing<K> {
    #[doc(hidden)]
    pub const fn new(
        opt: Opt,
        build: fn(&mut Record, &'static str, &mut At<'_>) -> Option<Arc<K>>,
        take_live: fn(&K, &K) -> Option<Arc<K>>,
    ) -> Self {
        Self { opt, build, take_live }
    }

    /// All of its options change while the program runs.
    pub const fn live(mut self) -> Self {
        self.opt.live = true;
        self
    }
}

/// The kinds that a configuration may name. It is filled before the first one is read.
#[derive(Debug)]
pub struct Registry<K: ?Sized + 'static> {
    added: Mutex<Vec<Listing<K>>>,
    fixed: OnceLock<(Vec<Listing<K>>, Vec<Opt>)>,
}

impl<K: ?Sized> Registry<K> {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self { added: Mutex::new(Vec::new()), fixed: OnceLock::new() }
    }

    /// Adds a kind, or puts it in the place of another with the same key.
    ///
    /// # Panics
    /// When a configuration was read already, or a schema was made: these are without it.
    pub fn add(&self, kind: Listing<K>) {
        assert!(self.fixed.get().is_none(), "a kind is added before a configuration is read");
        let mut added = self.added.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        added.retain(|other| other.opt.name != kind.opt.name);
        added.push(kind);
    }

    fn fixed(&self) -> &(Vec<Listing<K>>, Vec<Opt>) {
        self.fixed.get_or_init(|| {
            let mut added = self.added.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let kinds = std::mem::take(&mut *added);
            let opts = kinds.iter().map(|kind| kind.opt).collect();
            (kinds, opts)
        })
    }
}

/// The kind that a configuration names, with its options.
pub struct Chosen<K: ?Sized + 'static> {
    listing: Listing<K>,
    options: Arc<K>,
}

impl<K: ?Sized + Listed> Chosen<K> {
    /// The options, if they are of this type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.options.options().as_any().downcast_ref()
    }

    /// Whether it is the same kind, whatever the options.
    pub fn is_as(&self, other: &Self) -> bool {
        self.listing.opt.name == other.listing.opt.name
    }

    /// Whether any of its options is declared [live](crate::Of::live).
    pub fn has_live(&self) -> bool {
        let mut all = self.options.options().group().all();
        self.listing.opt.live || all.any(|option| option.live)
    }

    /// The options that differ and are not declared [live](crate::Of::live).
    pub fn fixed_that_differ(&self, other: &Self) -> Vec<&'static str> {
        if self.listing.opt.live {
            return Vec::new();
        }
        let (is, group) = (self.options.options(), self.options.options().group());
        let is_fixed = |name: &&str| group.find(name).is_none_or(|option| !option.live);
        is.differs(other.options.options()).into_iter().filter(is_fixed).collect()
    }

    /// This one with the live options of another of its kind.
    #[must_use]
    pub fn with_live(&self, wanted: &Self) -> Self {
        let taken = (self.listing.take_live)(&self.options, &wanted.options);
        match taken {
            _ if self.listing.opt.live && self.is_as(wanted) => wanted.clone(),
            Some(options) => Self { listing: self.listing, options },
            None => self.clone(),
        }
    }
}

impl<K: ?Sized> Clone for Chosen<K> {
    fn clone(&self) -> Self {
        Self { listing: self.listing, options: self.options.clone() }
    }
}

impl<K: ?Sized> Deref for Chosen<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.options
    }
}

impl<K: ?Sized + Listed> fmt::Debug for Chosen<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.options().fmt(f)
    }
}

impl<K: ?Sized + Listed> PartialEq for Chosen<K> {
    fn eq(&self, other: &Self) -> bool {
        self.is_as(other) && self.options.options().equals(other.options.options())
    }
}

impl<K: ?Sized + Listed> Kinds for Chosen<K> {
    fn kinds() -> &'static [Opt] {
        &K::registry().fixed().1
    }

    fn pick(record: &mut Record, at: &mut At<'_>) -> Option<Self> {
        let kinds = &K::registry().fixed().0;
        let listing = *kinds.iter().find(|kind| record.has(kind.opt.name))?;
        let options = (listing.build)(record, listing.opt.name, at)?;
        Some(Self { listing, options })
    }

    fn key(&self) -> &'static str {
        self.listing.opt.name
    }
}
