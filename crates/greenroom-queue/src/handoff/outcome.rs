//! The outcome of a message at a handoff slot.

use super::exchange::Exchange;
use crate::stamp::Stamp;

/// Whether the caller of a handed-over message still waits.
pub enum Caller<Port> {
    /// The response goes through the handoff slot.
    Waits,
    /// The caller has gone; the response goes to the port.
    Gone(Port),
}

/// The result for a waiting caller.
pub enum HandedOutcome<Response, Promise> {
    /// The response.
    Response(Response),
    /// The response will arrive at this promise.
    Later(Promise),
}

/// The result for a caller of this exchange.
pub type HandedOutcomeOf<T> = HandedOutcome<<T as Exchange>::Response, <T as Exchange>::Promise>;

/// A message that was handed over and taken back, and that has a port now.
pub type Retracted<T> = (<T as Exchange>::Message, Stamp, <T as Exchange>::Port);
