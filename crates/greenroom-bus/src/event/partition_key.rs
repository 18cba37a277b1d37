//! The key by which a broker keeps events together ("Partitioning" among the documented extensions
//! of CloudEvents).

use super::model::Event;

/// The extension attribute that holds it.
pub const PARTITION_KEY: &str = "partitionkey";

impl Event {
    /// This event with a [partition key](PARTITION_KEY), unless it has one. An empty key is none.
    ///
    /// Inputs of brokers set it to what the broker knows as the key of a message, so that
    /// `order_by: partitionkey` keeps the order that its producer meant.
    ///
    /// ```
    /// use greenroom_bus::event::Event;
    ///
    /// let event = Event::builder("1", "/shop", "order.placed").build()?.with_partition_key("7");
    /// assert_eq!(event.extension("partitionkey"), Some(&"7".into()));
    /// # Ok::<(), greenroom_bus::event::EventError>(())
    /// ```
    pub fn with_partition_key(mut self, key: &str) -> Self {
        if !key.is_empty() && self.extension(PARTITION_KEY).is_none() {
            self.change(|inner| inner.extensions.push((PARTITION_KEY.into(), key.into())));
        }
        self
    }
}
