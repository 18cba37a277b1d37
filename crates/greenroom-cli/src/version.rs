//! The identity of this greenroom (C17): the build script records the commit that it was built
//! from, and its features.

/// Version and commit, for example `0.1.0 (65590e2cafe0)`; `0.1.0 (commit unknown)` if the commit
/// is not known.
pub(crate) const SHORT: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("GREENROOM_COMMIT"), ")");

/// The same, and a line with the cargo features of this build, or `none`.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("GREENROOM_COMMIT"),
    ")\nfeatures: ",
    env!("GREENROOM_FEATURES")
);
