//! Attributes that an event inherits from its cause.

use super::model::{Event, ExtensionValue};

/// The extension attribute that all events of one flow share ("Correlation" among the documented
/// extensions of CloudEvents).
pub const CORRELATION_ID: &str = "correlationid";

/// The extension attribute with the id of the event that this one was made
/// for (the same extension).
pub const CAUSATION_ID: &str = "causationid";

/// The extension attribute with the position in a distributed trace ("Distributed
/// tracing"; W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// The companion of [`TRACEPARENT`], copied with it.
pub const TRACESTATE: &str = "tracestate";

impl Event {
    /// This event as a consequence of `cause`: with its [correlation id](CORRELATION_ID), if it has
    /// one, with its id as [causation id](CAUSATION_ID), and with its [trace](TRACEPARENT).
    /// Attributes that this event already has are kept.
    ///
    /// The engine does so with everything that a handler produces. An event that is passed on, the
    /// same id from the same source, has no cause but its own.
    ///
    /// ```
    /// use greenroom_bus::event::Event;
    ///
    /// let order = Event::builder("1", "/shop", "order.placed")
    ///     .extension("correlationid", "visit-7")
    ///     .build()?;
    /// let bill = Event::builder("2", "/bills", "bill.sent").build()?.caused_by(&order);
    /// assert_eq!(bill.extension("correlationid"), Some(&"visit-7".into()));
    /// assert_eq!(bill.extension("causationid"), Some(&"1".into()));
    /// # Ok::<(), greenroom_bus::event::EventError>(())
    /// ```
    pub fn caused_by(mut self, cause: &Self) -> Self {
        if (self.id(), self.source()) == (cause.id(), cause.source()) {
            return self;
        }
        if self.extension(TRACEPARENT).is_none() && cause.extension(TRACEPARENT).is_some() {
            self.remove(TRACESTATE);
            self.inherit(TRACEPARENT, cause.extension(TRACEPARENT));
            self.inherit(TRACESTATE, cause.extension(TRACESTATE));
        }
        self.inherit(CORRELATION_ID, cause.extension(CORRELATION_ID));
        self.inherit(CAUSATION_ID, Some(&cause.id().into()));
        self
    }

    /// This event as one of a flow: an event without a [correlation id](CORRELATION_ID)
    /// begins one, which has its id.
    pub fn correlated(mut self) -> Self {
        let own = ExtensionValue::from(self.id());
        self.inherit(CORRELATION_ID, Some(&own));
        self
    }

    /// Sets an attribute that is not there. The names are the ones above, so they need no check.
    fn inherit(&mut self, name: &'static str, value: Option<&ExtensionValue>) {
        let Some(value) = value else { return };
        if self.extension(name).is_none() {
            self.change(|inner| inner.extensions.push((name.into(), value.clone())));
        }
    }

    fn remove(&mut self, name: &str) {
        if self.extension(name).is_some() {
            self.change(|inner| inner.extensions.retain(|(found, _)| **found != *name));
        }
    }
}
