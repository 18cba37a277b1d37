//! The kinds that the program knows, in the order in which they are listed.

use std::sync::Once;

use greenroom_bus::source::{INPUTS, file, generator, http};

use super::options::{kafka, nats};

/// Adds them to the registries, beside those of a program that has kinds of its own.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        [file::INPUT, http::INPUT, kafka::input::INPUT, nats::input::INPUT, generator::INPUT]
            .into_iter()
            .for_each(|kind| INPUTS.add(kind));
    });
}
