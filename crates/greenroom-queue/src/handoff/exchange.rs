//! The types that pass through a handoff slot.

/// The types that pass through a handoff slot: a message one way, and a response the other way. A
/// response that does not come through the slot comes through a port.
pub trait Exchange {
    /// The value that the caller gives the worker.
    type Message;
    /// The value that the worker returns.
    type Response;
    /// The sending half for a response that does not come through the slot.
    type Port;
    /// The receiving half, at which the caller waits for that response.
    type Promise;

    /// Opens a port and its promise.
    fn open() -> (Self::Port, Self::Promise);

    /// Gives the response to the port. Returns it if the caller no longer waits for it.
    fn respond(port: Self::Port, response: Self::Response) -> Result<(), Self::Response>;
}
