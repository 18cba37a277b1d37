//! Values that travel with an event inside this process.

use std::{any::Any, fmt, sync::Arc};

use super::model::Event;

/// Values of different types, shared by the clones of an event. None are there most of the time, which costs nothing.
#[derive(Clone, Default)]
pub(super) struct Locals(Option<Arc<[Value]>>);

type Value = Arc<dyn Any + Send + Sync>;

impl Locals {
    fn values(&self) -> &[Value] {
        self.0.as_deref().unwrap_or_default()
    }

    fn find<T: Any>(&self) -> Option<&T> {
        self.values().iter().find_map(|value| value.downcast_ref())
    }

    fn with<T: Any + Send + Sync>(&self, value: T) -> Self {
        let others = self.values().iter().filter(|other| !other.is::<T>());
        Self(Some(others.cloned().chain([Arc::new(value) as Value]).collect()))
    }
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} local values", self.values().len())
    }
}

impl Event {
    /// This event with a value that travels with it: through pools, retries and layers, to the sinks or the dead letters.
    /// It is never written, does not count when events are compared, and is not passed on to what a handler produces. Of
    /// each type there is one value; the one that was there before is replaced. Clones made before do not have it.
    ///
    /// A permission that was checked when the event came in, the handle of a connection, a moment of time:
    ///
    /// ```
    /// use std::time::Instant;
    /// use greenroom_bus::event::Event;
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Received(Instant);
    ///
    /// let now = Instant::now();
    /// let event = Event::builder("1", "/shop", "order.placed").build()?.with_local(Received(now));
    /// assert_eq!(event.clone().local(), Some(&Received(now)));
    /// assert_eq!(event.local::<String>(), None);
    /// # Ok::<(), greenroom_bus::event::EventError>(())
    /// ```
    pub fn with_local<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.locals = self.locals.with(value);
        self
    }

    /// The value of this type that travels with the event.
    pub fn local<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.locals.find()
    }
}
