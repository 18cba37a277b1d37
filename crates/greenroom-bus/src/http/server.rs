//! What listeners share: which connections there are, when their bytes last moved, and how
//! large headers may be.

mod connections;
mod headers;
mod moving;

pub use self::{
    connections::{Answering, Connections, Place, within_descriptors},
    headers::{LARGEST_HEADERS, has_too_large_headers},
    moving::{LastMove, Moving},
};
