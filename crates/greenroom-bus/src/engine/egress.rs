//! Where events leave: outputs, and the store of dead letters.

pub(crate) mod dead_letters;
pub(crate) mod exits;
pub(crate) mod outputs;
