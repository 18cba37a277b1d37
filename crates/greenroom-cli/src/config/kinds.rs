//! The kinds that the program knows, in the order in which they are listed.

use std::sync::Once;

use greenroom_bus::{handler, handler::HANDLERS, sink, sink::OUTPUTS, source, source::INPUTS};

use super::options::{kafka, nats};

/// Adds them to the registries, beside those of a program that has kinds of its own.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        INPUTS.add(source::file::INPUT);
        INPUTS.add(source::http::INPUT);
        INPUTS.add(kafka::input::INPUT);
        INPUTS.add(nats::input::INPUT);
        INPUTS.add(source::generator::INPUT);

        HANDLERS.add(handler::pass::HANDLER);
        HANDLERS.add(handler::log::HANDLER);
        HANDLERS.add(handler::discard::HANDLER);
        HANDLERS.add(handler::simulate::HANDLER);
        HANDLERS.add(handler::exec::HANDLER);
        HANDLERS.add(handler::http::HANDLER);

        OUTPUTS.add(sink::file::OUTPUT);
        OUTPUTS.add(sink::http::OUTPUT);
        OUTPUTS.add(kafka::output::OUTPUT);
        OUTPUTS.add(nats::output::OUTPUT);
    });
}
