//! Configuration files in YAML and TOML, with options that are declared once.
//!
//! An option has a name, a type with a unit and a range, a default, and a sentence that describes
//! it. If each is written down in every place that needs it (the code that reads it, its checks, a
//! schema for editors, a reference page), they soon contradict one another. Here, one declaration
//! holds them all: the Rust type that the configuration is read into.
//!
//! ```text
//!                                              ┌─▶ typed value ─▶ checks across options
//! YAML or TOML ─▶ tree ─▶ --set ─▶ ${NAME}, ─▶ │
//!                 with places      file:       └─▶ problems: file, line, column, "did you mean"
//!                                              ▲
//!                 options! { struct … } ───────┼─▶ table, for a schema
//!                 one line an option           └─▶ reference page
//! ```
//!
//! - [`options!`] declares a mapping as a `struct`: a field is an option, the field's documentation
//!   is the option's, and its value is one of the words in [`option`](mod@option), such as
//!   `duration(1..=60_000).default("5s")`. The compiler checks that the option is read as the
//!   field's type. An `enum` declares keys of which exactly one is given.
//! - Checks across options, and inheritance between them, are a function that the declaration names
//!   (`then`). It gets the built value and its place ([`At`]).
//! - [`decode()`] reads as much as it can and reports every problem of the text in one run; a wrong
//!   value is left out or replaced by its default, so that the checks see the rest. A duplicate key
//!   is an error, and the message about an unknown key suggests the closest known one.
//! - A value that came from the environment or a file may be a secret: no message prints it.
//!
//! This crate depends on no other of Greenroom's crates and knows no option. Each declares its own.
//!
//! # Features
//! `text` (on by default) reads YAML and TOML; without it, configurations are built in code, which
//! can check the same ranges ([`schema::Kind::allows`]).
//!
//! # Price
//! A table of static data for each declaration, and one walk over the tree at startup. Nothing runs
//! after that.
//!
//! # When to use something else
//! If one error at a time is enough, use `serde` with a format of its own. It stops at the first
//! error by design.

mod at;
mod decode;
mod file;
mod interpolate;
mod listen;
mod literal;
mod macros;
pub mod near;
pub mod option;
mod options;
#[cfg(feature = "text")]
mod overrides;
mod places;
pub mod problem;
#[cfg(feature = "text")]
mod read;
mod record;
mod reference;
mod registry;
pub mod schema;
#[cfg(feature = "text")]
pub mod table;
mod take;
#[cfg(feature = "text")]
mod toml;
pub mod tree;
pub mod units;
#[cfg(feature = "text")]
mod yaml;

pub use self::{
    at::At,
    decode::{decode, defaults, defaults_beside},
    file::{STANDARD_INPUT, Unread, directory_of, text_of},
    interpolate::{World, interpolate},
    listen::Listen,
    literal::Literal,
    option::{
        Of, any, bare, command, count, count_or, duration, durations, each, flag, group, list,
        literal, literals, named, number, path, rate, size, text, texts, url, variables, word,
    },
    options::{Kinds, Options, Take, Whole, Word},
    places::{Places, Written},
    problem::{Problem, Problems, Severity, grouped, plural},
    record::{Record, Typed},
    reference::reference,
    registry::{AnyOptions, Chosen, Listed, Listing, Registered, Registry},
    schema::default::default_of,
    take::{CountOr, Secret},
    tree::{Place, Span},
};
#[cfg(feature = "text")]
pub use self::{
    overrides::apply,
    read::{Format, Toml, Yaml, read},
};
