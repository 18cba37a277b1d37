//! The words in which options are declared, as macros.

/// Declares a mapping with known keys: the type that it is read into, and the values, default and
/// purpose of each option. Decoding, defaults, checks, schema and reference page follow from it.
///
/// The documentation of the type and its fields is also that of the options: it appears in the
/// schema and on the reference page. Messages call the mapping by the title after the type's name,
/// which has an article.
///
/// ```
/// use greenroom_config::{Yaml, count, duration, group, options, path, text, words};
///
/// words! {
///     /// The behaviour when it is full.
///     pub enum OnFull {
///         /// The sender waits.
///         Wait = "wait",
///         /// It is refused.
///         Refuse = "refuse",
///     }
/// }
///
/// options! {
///     /// Where events come from.
///     pub struct Input named name = "an input" {
///         /// How many may wait.
///         room: usize = count(1..=1_000).default("10").alias(&["queue"]).live();
///         /// The behaviour when that is full.
///         on_full: OnFull = greenroom_config::word().default("wait");
///         /// Which of them to take.
///         matches as "match": Option<String> = text().optional();
///         .. /// The place to read from.
///         kind: InputKind;
///         refused { "kafka": "`kafka` inputs are not part of this version"; }
///     }
/// }
///
/// options! {
///     /// The place to read from.
///     pub enum InputKind = "a place to read from" {
///         /// A file, once.
///         File(File) as "file" = group();
///     }
/// }
///
/// options! {
///     /// One event on each line.
///     pub struct File = "a file" {
///         /// The file.
///         path: std::path::PathBuf = path();
///     }
/// }
///
/// options! {
///     /// The whole.
///     pub struct Config = "the configuration" {
///         /// Where events come from, by name.
///         inputs: Vec<Input> = greenroom_config::named();
///     }
/// }
///
/// let text = "inputs: { orders: { file: { path: a }, queue: 7 } }";
/// let config = greenroom_config::read::<Config>(Yaml, text).unwrap();
/// assert_eq!((config.inputs[0].name.as_str(), config.inputs[0].room), ("orders", 7));
///
/// let text = "inputs: { orders: { fil: {}, room: none } }";
/// let problems = greenroom_config::read::<Config>(Yaml, text).unwrap_err();
/// let lines: Vec<_> = problems.sorted().iter().map(|problem| problem.message.clone()).collect();
/// assert_eq!(lines, [
///     "unknown key `fil` in an input",
///     "`room` has to be a whole number from 1 to 1000, but this is the text `none`",
/// ]);
/// ```
///
/// - `named name` gives the type a field with the user's name for it.
/// - `, short "key"` after the title: a single value, written in place of the mapping, is short for
///   that key.
/// - `, then path::to::function` after the title names a function that runs once all options are
///   read. It takes the built value and its place ([`At`](crate::At)) and returns the value. It
///   reports options that conflict and fills in those that inherit from others. `None` leaves the
///   mapping out.
/// - `field as "key"` is for keys that cannot be field names.
/// - `..` before the last field includes the keys of an `enum` or of a [registry](crate::registry),
///   of which exactly one is given; at most one if the field is an `Option`.
/// - `refused` names keys that get an error message of their own.
/// - An `enum` declares such keys, each with its options; one without a payload is
///   [`bare`](crate::bare).
///
/// A type that implements more than `Debug`, `Clone` and `PartialEq` has a `#[derive(..)]` before
/// it.
#[macro_export]
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $name:ident $(named $key:ident)? = $title:literal
        $(, short $short:literal)? $(, then $then:path)? {
            $(
                $(#[doc = $doc:literal])+
                $field:ident $(as $spelled:literal)? : $type:ty = $of:expr;
            )*
            $(.. $(#[doc = $kinds_doc:literal])+ $kinds:ident : $kinds_type:ty;)?
            $(refused { $($refused:literal : $why:literal;)* })?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq $($(, $derive)+)?)]
        $vis struct $name {
            $(
                /// Its name.
                pub $key: String,
            )?
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($(#[doc = $kinds_doc])+ pub $kinds: $kinds_type,)?
        }

        impl $crate::Options for $name {
            const GROUP: &'static $crate::schema::Group = &$crate::schema::Group {
                title: $title,
                doc: concat!($($about),+).trim_ascii(),
                options: &[
                    $({
                        const OF: $crate::Of<$type> = $of;
                        OF.opt($crate::__key!($field $($spelled)?), concat!($($doc),+).trim_ascii())
                    },)*
                    $($($crate::schema::Opt::refused($refused, $why),)*)?
                ],
                kinds: $crate::__kinds!($($kinds_type)?),
                needs_kind: $crate::__needs_kind!($($kinds_type)?),
                short: $crate::__short!($($short)?),
            };

            fn build(mut record: $crate::Record, at: &mut $crate::At<'_>) -> Option<Self> {
                $(let $key = at.name().to_owned();)?
                // All are taken before a missing one ends it: each may have something to report.
                $(let $field = <$type as $crate::Take>::take_from(&mut record, $crate::__key!($field $($spelled)?), at);)*
                $(let $kinds = <$kinds_type as $crate::Kinds>::pick(&mut record, at);)?
                let built = Self { $($key,)? $($field: $field?,)* $($kinds: $kinds?,)? };
                $(let built = $then(built, at)?;)?
                Some(built)
            }

            fn differs(&self, other: &Self) -> Vec<&'static str> {
                let pairs: &[(&'static str, bool)] = &[
                    $(($crate::__key!($field $($spelled)?), self.$field != other.$field),)*
                    $(("(its kind)", self.$kinds != other.$kinds),)?
                ];
                pairs.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
            }

            fn take_live(&mut self, wanted: &Self) {
                $({
                    const OF: $crate::Of<$type> = $of;
                    if OF.is_live() {
                        self.$field.clone_from(&wanted.$field);
                    }
                })*
                let _ = wanted;
            }
        }

        impl $crate::Take for $name {
            fn take(found: Option<$crate::Typed>, at: &mut $crate::At<'_>) -> Option<Self> {
                match found? {
                    $crate::Typed::Group(record) => <Self as $crate::Options>::build(record, at),
                    _ => None,
                }
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis enum $name:ident = $title:literal $(, then $then:path)? {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident $(($type:ty))? as $spelled:literal = $of:expr;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq $($(, $derive)+)?)]
        $vis enum $name {
            $($(#[doc = $doc])+ $variant $(($type))?,)+
        }

        impl $crate::Kinds for $name {
            fn kinds() -> &'static [$crate::schema::Opt] {
                const KINDS: &[$crate::schema::Opt] = &[
                    $({
                        const OF: $crate::Of<$crate::__payload!($($type)?)> = $of;
                        OF.kind($spelled, concat!($($doc),+).trim_ascii())
                    },)+
                ];
                KINDS
            }

            fn pick(record: &mut $crate::Record, at: &mut $crate::At<'_>) -> Option<Self> {
                let built = 'given: {
                    $(if record.has($spelled) {
                        break 'given Self::$variant $((
                            <$type as $crate::Take>::take_from(record, $spelled, at)?
                        ))?;
                    })+
                    return None;
                };
                $(let built = $then(built, at)?;)?
                Some(built)
            }

            fn key(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $spelled,)+
                }
            }
        }

        impl $crate::Options for $name {
            const GROUP: &'static $crate::schema::Group = &$crate::schema::Group {
                title: $title,
                doc: concat!($($about),+).trim_ascii(),
                options: &[],
                kinds: <Self as $crate::Kinds>::kinds,
                needs_kind: true,
                short: None,
            };

            fn build(mut record: $crate::Record, at: &mut $crate::At<'_>) -> Option<Self> {
                <Self as $crate::Kinds>::pick(&mut record, at)
            }

            fn differs(&self, other: &Self) -> Vec<&'static str> {
                if self == other { Vec::new() } else { vec![$crate::Kinds::key(self)] }
            }

            fn take_live(&mut self, _wanted: &Self) {}
        }

        impl $crate::Take for $name {
            fn take(found: Option<$crate::Typed>, at: &mut $crate::At<'_>) -> Option<Self> {
                match found? {
                    $crate::Typed::Group(record) => <Self as $crate::Options>::build(record, at),
                    _ => None,
                }
            }
        }
    };
}

/// Makes the implementors of a trait kinds, and declares the function that makes a
/// [`Listing`](crate::Listing) of one. The trait extends [`AnyOptions`](crate::AnyOptions).
///
/// ```
/// use greenroom_config::{AnyOptions, Chosen, Yaml, count, named, options, read};
///
/// trait Source: AnyOptions {
///     fn first(&self) -> u64;
/// }
///
/// greenroom_config::kinds! {
///     /// A source, by its key.
///     fn source: dyn Source;
/// }
///
/// options! {
///     /// Counts.
///     struct Counter = "a counter" {
///         /// From where.
///         from: u64 = count(0..=9).default("1");
///     }
/// }
///
/// impl Source for Counter {
///     fn first(&self) -> u64 {
///         self.from
///     }
/// }
///
/// greenroom_config::registry! {
///     /// The places to read from.
///     static SOURCES: Sources of dyn Source = [source::<Counter>("counter", "Counts up.")];
/// }
///
/// options! {
///     /// Where events come from.
///     struct Input named name = "an input" {
///         .. /// The place to read from.
///         kind: Chosen<Sources>;
///     }
/// }
///
/// options! {
///     /// The whole.
///     struct Config = "the configuration" {
///         /// Where events come from, by name.
///         inputs: Vec<Input> = named();
///     }
/// }
///
/// SOURCES.add(source::<Counter>("from", "Counts up, too."));
/// let config = read::<Config>(Yaml, "inputs: { a: { counter: { from: 3 } } }").unwrap();
/// assert_eq!(config.inputs[0].kind.first(), 3);
/// let problems = read::<Config>(Yaml, "inputs: { a: { file: {} } }").unwrap_err();
/// assert!(problems.to_string().contains("it knows `counter`, `from`"), "{problems}");
/// ```
#[macro_export]
macro_rules! kinds {
    (
        $(#[doc = $doc:literal])+
        $vis:vis fn $line:ident: dyn $kind:path;
    ) => {
        impl $crate::Listed for dyn $kind {
            fn options(&self) -> &dyn $crate::AnyOptions {
                self
            }
        }

        $(#[doc = $doc])+
        $vis const fn $line<T: $kind + $crate::Options + Clone>(
            key: &'static str,
            doc: &'static str,
        ) -> $crate::Listing<dyn $kind> {
            $crate::Listing::new(
                $crate::group::<T>().kind(key, doc),
                |record, key, at| {
                    let options = <T as $crate::Take>::take_from(record, key, at)?;
                    Some(::std::sync::Arc::new(options))
                },
                |is, wanted| {
                    let mut taken = is.as_any().downcast_ref::<T>()?.clone();
                    taken.take_live(wanted.as_any().downcast_ref::<T>()?);
                    Some(::std::sync::Arc::new(taken))
                },
            )
        }
    };
}

/// Declares a [`Registry`](crate::Registry) of [kinds](crate::kinds), and the type for an option
/// that names one of them ([`Chosen`](crate::Chosen)).
#[macro_export]
macro_rules! registry {
    (
        $(#[doc = $about:literal])+
        $vis:vis static $registry:ident: $name:ident of dyn $kind:path = [$($listing:expr),* $(,)?];
    ) => {
        $(#[doc = $about])+
        $vis static $registry: $crate::Registry<dyn $kind> = $crate::Registry::new(&[$($listing),*]);

        #[doc = concat!("What [`", stringify!($registry), "`] holds, as a type.")]
        #[derive(Debug)]
        $vis enum $name {}

        impl $crate::Registered for $name {
            type Kind = dyn $kind;

            fn registry() -> &'static $crate::Registry<dyn $kind> {
                &$registry
            }
        }
    };
}

/// Declares a type whose values are words in the configuration, each with its documentation.
///
/// ```
/// use greenroom_config::{Word, words};
///
/// words! {
///     /// How an event is written.
///     pub enum Mode {
///         /// Data as the body.
///         Binary = "binary",
///         /// The event as JSON.
///         Structured = "structured",
///     }
/// }
///
/// assert_eq!(Mode::of("binary"), Some(Mode::Binary));
/// assert_eq!(Mode::Structured.to_string(), "structured");
/// assert!(Mode::all().eq([Mode::Binary, Mode::Structured]));
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])+
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad($crate::Word::word(*self))
            }
        }

        impl $crate::Word for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

/// The key of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! __key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $spelled:literal) => {
        $spelled
    };
}

/// The payload of a variant.
#[doc(hidden)]
#[macro_export]
macro_rules! __payload {
    () => {
        ()
    };
    ($type:ty) => {
        $type
    };
}

/// The kinds among the options of a mapping.
#[doc(hidden)]
#[macro_export]
macro_rules! __kinds {
    () => {
        $crate::schema::no_kinds
    };
    ($type:ty) => {
        <$type as $crate::Kinds>::kinds
    };
}

/// Whether one of these is required.
#[doc(hidden)]
#[macro_export]
macro_rules! __needs_kind {
    () => {
        false
    };
    ($type:ty) => {
        <$type as $crate::Kinds>::NEEDED
    };
}

/// The key that a single value is short for.
#[doc(hidden)]
#[macro_export]
macro_rules! __short {
    () => {
        None
    };
    ($short:literal) => {
        Some($short)
    };
}
