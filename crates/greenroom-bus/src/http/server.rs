//! Shared by listeners: the open connections, when their bytes last moved, and the limit on
//! headers.

mod connections;
mod headers;
mod moving;

pub use self::{
    connections::{Answering, Connections, Place, within_descriptors},
    headers::{LARGEST_HEADERS, has_too_large_headers},
    moving::{LastMove, Moving},
};
