//! Kinds that come from several crates: an open `enum` of [`options!`](crate::options).
//!
//! ```text
//! kind's folder ─▶ Listing ─┐                       ┌─▶ schema, reference page
//! kind's folder ─▶ Listing ─┼─▶ Registry<dyn Kind> ─┤
//! a user's own  ─▶ Listing ─┘                       └─▶ Chosen<Kinds>: its key, its options
//! ```
//!
//! A trait declares what a program asks of a kind ([`kinds!`](crate::kinds)); the options of each
//! kind implement it, and [`registry!`](crate::registry) lists the kinds that a configuration may
//! name. The price is a virtual call for each question, while a configuration is read and applied.

use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::{
    at::At,
    options::{Kinds, Options},
    record::Record,
    schema::{Group, Opt},
};

/// The questions that the options of any kind answer.
pub trait AnyOptions: Any + fmt::Debug + Send + Sync {
    /// For a cast to their type.
    fn as_any(&self) -> &dyn Any;

    /// Their table.
    fn group(&self) -> &'static Group;

    /// Whether they are the same. Options of another kind never are.
    fn equals(&self, other: &dyn AnyOptions) -> bool;

    /// Like [`Options::differs`]. Options of another kind are not compared.
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

/// A trait whose implementors are kinds. [`kinds!`](crate::kinds) implements it.
pub trait Listed: 'static {
    /// The options as such, without the trait.
    fn options(&self) -> &dyn AnyOptions;
}

/// The kinds that one place of a configuration may name, as a type. Declared by
/// [`registry!`](crate::registry).
pub trait Registered: 'static {
    /// The trait that they share.
    type Kind: ?Sized + Listed;

    /// The registry.
    fn registry() -> &'static Registry<Self::Kind>;
}

/// A kind in a registry: its key, its purpose, and how its options are read.
#[derive(Debug)]
pub struct Listing<K: ?Sized + 'static> {
    opt: Opt,
    start: Option<&'static str>,
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
        Self { opt, start: None, build, take_live }
    }

    /// Initial options, as YAML: the value of its key in a new configuration.
    pub const fn start(mut self, options: &'static str) -> Self {
        self.start = Some(options);
        self
    }

    /// All of its options change while the program runs.
    pub const fn live(mut self) -> Self {
        self.opt.live = true;
        self
    }
}

/// The kinds that a configuration may name: the declared ones, then those that a program adds.
#[derive(Debug)]
pub struct Registry<K: ?Sized + 'static> {
    declared: &'static [Listing<K>],
    /// `None` once the kinds are fixed.
    added: Mutex<Option<Vec<Listing<K>>>>,
    fixed: OnceLock<(Vec<Listing<K>>, Vec<Opt>)>,
}

impl<K: ?Sized> Registry<K> {
    #[doc(hidden)]
    pub const fn new(declared: &'static [Listing<K>]) -> Self {
        Self { declared, added: Mutex::new(Some(Vec::new())), fixed: OnceLock::new() }
    }

    /// Adds a kind. A program does this at startup.
    ///
    /// # Panics
    /// If a kind with its key already exists, or if a configuration was read or a schema made
    /// before, which lacked it.
    #[track_caller]
    pub fn add(&self, kind: Listing<K>) {
        let key = kind.opt.name;
        if let Err(why) = self.try_add(kind) {
            panic!("the kind `{key}` cannot be added: {why}");
        }
    }

    fn try_add(&self, kind: Listing<K>) -> Result<(), &'static str> {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let added = added.as_mut().ok_or("add it before a configuration is read")?;
        if self.declared.iter().chain(&*added).any(|other| other.opt.name == kind.opt.name) {
            return Err("there is one with this key; choose another key");
        }
        added.push(kind);
        Ok(())
    }

    /// The keys of kinds that have initial options, each with these. No kind can be added
    /// afterwards.
    pub fn starts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.fixed().0.iter().filter_map(|kind| Some((kind.opt.name, kind.start?)))
    }

    fn fixed(&self) -> &(Vec<Listing<K>>, Vec<Opt>) {
        self.fixed.get_or_init(|| {
            let added = self.added.lock().unwrap_or_else(PoisonError::into_inner).take();
            let kinds: Vec<_> =
                self.declared.iter().copied().chain(added.into_iter().flatten()).collect();
            let opts = kinds.iter().map(|kind| kind.opt).collect();
            (kinds, opts)
        })
    }
}

/// The kind that a configuration names, with its options.
pub struct Chosen<R: Registered> {
    listing: Listing<R::Kind>,
    options: Arc<R::Kind>,
}

impl<R: Registered> Chosen<R> {
    /// The options, if they are of this type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.options.options().as_any().downcast_ref()
    }

    /// Whether it is the same kind, whatever its options.
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

    /// This one with the live options of another one of its kind.
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

impl<R: Registered> Clone for Chosen<R> {
    fn clone(&self) -> Self {
        Self { listing: self.listing, options: self.options.clone() }
    }
}

impl<R: Registered> Deref for Chosen<R> {
    type Target = R::Kind;

    fn deref(&self) -> &R::Kind {
        &self.options
    }
}

impl<R: Registered> fmt::Debug for Chosen<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.options().fmt(f)
    }
}

impl<R: Registered> PartialEq for Chosen<R> {
    fn eq(&self, other: &Self) -> bool {
        self.is_as(other) && self.options.options().equals(other.options.options())
    }
}

impl<R: Registered> Kinds for Chosen<R> {
    fn kinds() -> &'static [Opt] {
        &R::registry().fixed().1
    }

    fn pick(record: &mut Record, at: &mut At<'_>) -> Option<Self> {
        let kinds = &R::registry().fixed().0;
        let listing = *kinds.iter().find(|kind| record.has(kind.opt.name))?;
        let options = (listing.build)(record, listing.opt.name, at)?;
        Some(Self { listing, options })
    }

    fn key(&self) -> &'static str {
        self.listing.opt.name
    }
}

/// It may be left out.
impl<R: Registered> Kinds for Option<Chosen<R>> {
    const NEEDED: bool = false;

    fn kinds() -> &'static [Opt] {
        Chosen::<R>::kinds()
    }

    fn pick(record: &mut Record, at: &mut At<'_>) -> Option<Self> {
        Some(Chosen::pick(record, at))
    }

    fn key(&self) -> &'static str {
        self.as_ref().map_or("", Kinds::key)
    }
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;
    use crate::{kinds, options, registry};

    trait Source: AnyOptions {}

    kinds! {
        /// A source.
        fn source: dyn Source;
    }

    options! {
        /// Anything.
        struct Any = "anything" {
            /// How much.
            much: u64 = crate::count(0..=9).default("1");
        }
    }

    impl Source for Any {}

    /// The reason for the refusal.
    fn refusal(registry: &'static Registry<dyn Source>, key: &'static str) -> String {
        let add = move || registry.add(source::<Any>(key, "Another."));
        *panic::catch_unwind(add).unwrap_err().downcast().unwrap()
    }

    #[test]
    fn a_kind_with_the_key_of_another_is_refused() {
        registry! {
            /// What may be read.
            static SOURCES: Sources of dyn Source = [source::<Any>("file", "Declared.")];
        }
        SOURCES.add(source::<Any>("queue", "Added."));
        for key in ["file", "queue"] {
            let why = refusal(&SOURCES, key);
            assert!(why.contains(&format!("`{key}`")) && why.contains("another key"), "{why}");
        }
        let keys: Vec<_> = Chosen::<Sources>::kinds().iter().map(|kind| kind.name).collect();
        assert_eq!(keys, ["file", "queue"]);
    }

    #[test]
    fn a_kind_is_refused_once_the_kinds_were_asked_for() {
        registry! {
            /// What may be read.
            static SOURCES: Sources of dyn Source = [];
        }
        assert_eq!(Chosen::<Sources>::kinds().len(), 0);
        let why = refusal(&SOURCES, "late");
        assert!(why.contains("before a configuration is read"), "{why}");
    }
}
