//! The kinds that a configuration may name, in the order in which they are listed.

use greenroom_bus::{dead_letter::LettersKind, handler, sink, source};
use greenroom_config::registry;
use greenroom_kafka::kinds as kafka;
use greenroom_nats::kinds as nats;

registry! {
    /// The kinds of inputs. A program with kinds of its own adds them before it reads a
    /// configuration.
    pub static INPUTS: Inputs of dyn source::InputKind = [
        source::file::INPUT,
        source::http::INPUT,
        kafka::INPUT,
        nats::INPUT,
        greenroom_redis::kind::INPUT,
        source::generator::INPUT,
    ];
}

registry! {
    /// The kinds of handlers. A program with kinds of its own adds them before it reads a
    /// configuration.
    pub static HANDLERS: Handlers of dyn handler::HandlerKind = [
        handler::pass::HANDLER,
        handler::log::HANDLER,
        handler::discard::HANDLER,
        handler::simulate::HANDLER,
        handler::exec::HANDLER,
        handler::http::HANDLER,
    ];
}

registry! {
    /// The kinds of outputs. A program with kinds of its own adds them before it reads a
    /// configuration.
    pub static OUTPUTS: Outputs of dyn sink::OutputKind = [
        sink::file::OUTPUT,
        sink::http::OUTPUT,
        kafka::OUTPUT,
        nats::OUTPUT,
    ];
}

registry! {
    /// The brokers that dead letters may go to instead of a file. A program with kinds of its own
    /// adds them before it reads a configuration.
    pub static LETTERS: Letters of dyn LettersKind = [kafka::LETTERS, nats::LETTERS];
}
