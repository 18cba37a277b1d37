//! Configurations that are made in code: set option by option, from a command line or the
//! environment.

use std::path::Path;

use crate::{
    at::At,
    options::Options,
    places::Places,
    problem::Problems,
    scalar,
    schema::Opt,
    tree::{Node, Place, Value},
};

/// Why an option was not set. Nothing was changed.
#[derive(Debug, Clone, Copy)]
pub enum NotSet {
    /// There is no such key.
    Unknown,
    /// It does not take that value.
    Wrong(&'static Opt),
}

/// Sets one option that is a single value, by any of its names, to what is written: the same as
/// unquoted in YAML.
///
/// ```
/// use greenroom_config::{NotSet, count, defaults, options, set};
///
/// options! {
///     /// A pool.
///     pub struct Pool = "a pool" {
///         /// How many work.
///         workers: usize = count(1..=64).alias(&["pool_size"]).default("8");
///     }
/// }
///
/// let mut pool = defaults::<Pool>("").unwrap();
/// set(&mut pool, "poolSize", "6_4").unwrap();
/// assert_eq!(pool.workers, 64);
/// let beyond = set(&mut pool, "workers", "65");
/// assert!(matches!(beyond, Err(NotSet::Wrong(opt)) if opt.name == "workers"));
/// assert!(matches!(set(&mut pool, "wrkers", "6"), Err(NotSet::Unknown)));
/// ```
///
/// # Errors
/// There is no such key, or it does not take that value.
pub fn set<T: Options>(config: &mut T, key: &str, written: &str) -> Result<(), NotSet> {
    let opt = T::GROUP.find(key).filter(|opt| opt.is_built()).ok_or(NotSet::Unknown)?;
    let mut node = Node::new(Value::Text(written.to_owned()), Place::whole_file());
    // So it is read as what it is written for, as the value of an environment variable is.
    node.origin = Some(opt.name.into());
    let value = scalar::decode(&node, &opt.kind).map_err(|_| NotSet::Wrong(opt))?;
    let (places, mut problems) = (Places::default(), Problems::default());
    let mut at = At::new(opt.name, &places, Path::new(""), &mut problems);
    let put = config.put(opt.name, value, &mut at);
    put.filter(|()| problems.errors() == 0).ok_or(NotSet::Wrong(opt))
}
