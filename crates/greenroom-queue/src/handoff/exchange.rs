//! What passes through a handoff slot.

/// What passes through a handoff slot: a message one way, and a response the other. A response that
/// does not come through the slot comes through a port.
pub trait Exchange {
    /// What the caller gives the worker.
    type Message;
    /// What the worker gives back.
    type Response;
    /// Where a response is given that does not come through the slot.
    type Port;
    /// Where the caller waits for that.
    type Promise;

    /// A port, and the promise of what is given there.
    fn open() -> (Self::Port, Self::Promise);

    /// Gives the response to the port. Returns it if nobody waits for it any more.
    fn respond(port: Self::Port, response: Self::Response) -> Result<(), Self::Response>;
}
