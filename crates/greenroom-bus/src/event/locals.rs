//! Values that travel with an event inside this process.

use std::{any::Any, fmt, sync::Arc};

/// Values of different types, shared by the clones of an event. None are there most of the
/// time, which costs nothing.
#[derive(Clone, Default)]
pub(super) struct Locals(Option<Arc<Values>>);

/// Behind a thin pointer: an event is moved far more often than a value is looked up.
type Values = Box<[LocalValue]>;

type LocalValue = Arc<dyn Any + Send + Sync>;

impl Locals {
    fn values(&self) -> &[LocalValue] {
        self.0.as_deref().map_or(&[], |values| values)
    }

    pub(super) fn find<T: Any>(&self) -> Option<&T> {
        self.values().iter().find_map(|value| value.downcast_ref())
    }

    pub(super) fn with<T: Any + Send + Sync>(&self, value: T) -> Self {
        let others = self.values().iter().filter(|other| !other.is::<T>());
        let values: Values = others.cloned().chain([Arc::new(value) as LocalValue]).collect();
        Self(Some(Arc::new(values)))
    }
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} local values", self.values().len())
    }
}
