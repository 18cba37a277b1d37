//! What listeners share: which connections there are, and when their bytes last moved.

mod connections;
mod moving;

pub use self::{
    connections::{Answering, Connections, Place, within_descriptors},
    moving::{LastMove, Moving},
};
