//! The metadata that a sender may attach to a message.

use std::{sync::Arc, time::Duration};

use crate::{AnyAddress, CancellationToken, Class, delivery::SenderInfo, pool::later};

/// The metadata that a message carries. A plain send has no envelope, and pays for none.
///
/// ```
/// # use greenroom::{Envelope, prelude::*};
/// # use std::time::Duration;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).spawn().await?;
/// let soon = Envelope::urgent().deadline(Duration::from_secs(1));
/// assert_eq!(pool.call_with(7, soon).await, Ok(7));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "an envelope is for a message"]
pub struct Envelope {
    pub(crate) class: Class,
    pub(crate) about: SenderInfo,
    /// How long the caller waits.
    pub(crate) timeout: Option<Duration>,
}

impl Envelope {
    /// An empty envelope.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a message that is handled before normal ones.
    pub fn urgent() -> Self {
        Self { class: Class::Urgent, ..Self::default() }
    }

    /// The class of the message.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// The message is not started later than this from now: it then becomes a dead letter, and its
    /// caller gets [`CallError::Expired`](crate::CallError::Expired).
    pub fn deadline(mut self, within: Duration) -> Self {
        self.about.deadline = Some(later(within));
        self
    }

    /// How long a call waits for its reply, from now: the caller then gets
    /// [`CallError::TimedOut`](crate::CallError::TimedOut), and a message that has not been started
    /// is skipped.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the sender.
    pub fn sender(mut self, sender: AnyAddress) -> Self {
        self.about.sender = Some(sender);
        self
    }

    /// Notifies its handler when the result is no longer wanted.
    pub fn token(mut self, token: CancellationToken) -> Self {
        self.about.token = Some(token);
        self
    }

    /// The trace that it belongs to, as text (a W3C `traceparent`, for instance).
    pub fn trace(mut self, context: impl Into<Arc<str>>) -> Self {
        self.about.trace = Some(context.into());
        self
    }
}
