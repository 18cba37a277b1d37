//! Why pools and handlers cannot be as they were named.

/// A pool or a handler that cannot be added or taken away. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// A pool needs a name.
    #[error("a pool has an empty name")]
    PoolNameEmpty,
    /// A pool is named twice; `default` always exists.
    #[error("the pool {0:?} exists already")]
    PoolExists(String),
    /// A handler names a pool that does not exist.
    #[error("the handler {handler:?} names the pool {pool:?}, which does not exist")]
    PoolNotFound {
        /// The handler.
        handler: String,
        /// The pool that it names.
        pool: String,
    },
    /// A handler needs a name.
    #[error("a handler has an empty name")]
    HandlerNameEmpty,
    /// A handler is named twice, or another gets all events of the same type or pattern.
    #[error("the handler {handler:?} cannot be added: {reason}")]
    HandlerExists {
        /// The handler.
        handler: String,
        /// The conflict, and the other handler.
        reason: String,
    },
    /// A handler would never get an event.
    #[error("the handler {0:?} is for no event: name at least one type or pattern")]
    HandlerForNothing(String),
    /// A handler is to settle its events itself, and cannot.
    #[error("the handler {0:?} says `ack: manual`, and does not settle events itself")]
    CannotSettle(String),
    /// A pool that a handler needs.
    #[error("the pool {pool:?} cannot be removed: the handler {handler:?} needs it")]
    PoolInUse {
        /// The pool.
        pool: String,
        /// The handler.
        handler: String,
    },
    /// There is no pool or handler of this name, or it is the pool `default`.
    #[error("{0:?} cannot be removed: there is none of that name, or it is the pool `default`")]
    NotRemoved(String),
}
