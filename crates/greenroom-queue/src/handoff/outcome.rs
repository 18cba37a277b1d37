//! What comes of a message at a handoff slot.

use super::exchange::Exchange;
use crate::stamp::Stamp;

/// Whether a message that was handed over is waited for.
pub enum Caller<Port> {
    /// The response goes through the handoff slot.
    Waits,
    /// Its caller has gone, as the port says.
    Gone(Port),
}

/// What a caller that waits is told.
pub enum HandedOutcome<Response, Promise> {
    /// The response.
    Response(Response),
    /// It is to come this way.
    Later(Promise),
}

/// What a caller of this exchange is told.
pub type HandedOutcomeOf<T> = HandedOutcome<<T as Exchange>::Response, <T as Exchange>::Promise>;

/// A message that was handed over and taken back. It has a port now.
pub type Retracted<T> = (<T as Exchange>::Message, Stamp, <T as Exchange>::Port);
