//! Values that workers publish about themselves, readable even while they are stuck.
//!
//! A message that asks an actor for its state fails when it is needed: the mailbox is full,
//! or the handler hangs. So the actor is not asked. A worker publishes its values where
//! others can read them:
//!
//! ```text
//! handler ──publish("cached", 17)──▶ the slot's values ◀──snapshot── an inspection
//!                                    (the last of each key)
//! ```
//!
//! [`PoolAdmin::inspect`](crate::PoolAdmin::inspect) adds the runtime's own figures. Reading takes
//! bounded time and runs no user code: values are plain ([`Value`]), and at most [`MOST_KEYS`] per
//! worker. [`Items`] selects them.
//!
//! # Price
//! A mostly free lock, and a search among the keys for each published value. Text is copied.
//! Publish values that change occasionally; sum up values that change with every message first.

use std::{collections::BTreeMap, sync::Arc};

use greenroom_queue::lock::Mutex;

mod inspection;
mod items;
mod value;

pub use inspection::{Inspection, WorkerFigures, WorkerInspection, WorkerStatus};
pub use items::Items;
pub use value::Value;

/// Keys that a worker may publish values for. Enough for any readable page. Keys made from
/// messages, which would grow without bound, are soon refused.
pub const MOST_KEYS: usize = 64;

/// A worker has published values for as many keys as allowed; those it can still replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {MOST_KEYS} published keys is reached")]
#[non_exhaustive]
pub struct TooManyKeys {}

/// The values that one worker has published.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Never more than `MOST_KEYS`. It contains no user code.
    values: Mutex<BTreeMap<Arc<str>, Value>>,
}

impl Published {
    /// Replaces the value of a key.
    ///
    /// # Errors
    /// If the key is new and the maximum is reached.
    pub(crate) fn publish(&self, key: &str, value: impl Into<Value>) -> Result<(), TooManyKeys> {
        // Converted and dropped outside the lock: the first is user code, the
        // second may free memory.
        let replaced = self.put(key, value.into())?;
        drop(replaced);
        Ok(())
    }

    fn put(&self, key: &str, value: Value) -> Result<Option<Value>, TooManyKeys> {
        let mut values = self.values.lock();
        if let Some(present) = values.get_mut(key) {
            return Ok(Some(std::mem::replace(present, value)));
        }
        if values.len() >= MOST_KEYS {
            drop(values);
            return Err(TooManyKeys {});
        }
        Ok(values.insert(key.into(), value))
    }

    /// Forgets everything: another worker takes the slot.
    pub(crate) fn clear(&self) {
        let values = std::mem::take(&mut *self.values.lock());
        drop(values);
    }

    /// The values that are wanted, in the order of their keys.
    pub(crate) fn snapshot(&self, wanted: &Items) -> Vec<(Arc<str>, Value)> {
        if !wanted.any_value() {
            return Vec::new();
        }
        let values = self.values.lock();
        let values = values.iter().filter(|(key, _)| wanted.wants(key));
        values.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(published: &Published, wanted: &Items) -> Vec<(String, Value)> {
        let values = published.snapshot(wanted).into_iter();
        values.map(|(key, value)| (key.to_string(), value)).collect()
    }

    fn full() -> Published {
        let published = Published::default();
        for key in 0..MOST_KEYS {
            published.publish(&key.to_string(), key).unwrap();
        }
        published
    }

    #[test]
    fn a16_the_value_last_published_is_what_is_read() {
        let published = Published::default();
        published.publish("state", "warming up").unwrap();
        published.publish("cached", 1_usize).unwrap();
        published.publish("state", "warm").unwrap();
        let both = [("cached".to_owned(), Value::Int(1)), ("state".to_owned(), "warm".into())];
        assert_eq!(snapshot(&published, &Items::All), both);
    }

    #[test]
    fn a16_a_filter_leaves_out_what_is_not_wanted() {
        let published = full();
        assert_eq!(snapshot(&published, &Items::Figures), []);
        let wanted = Items::keys(["7", "unknown", "3"]);
        let values = [("3".to_owned(), Value::Int(3)), ("7".to_owned(), Value::Int(7))];
        assert_eq!(snapshot(&published, &wanted), values);
    }

    #[test]
    fn a16_keys_are_bounded_and_known_ones_still_replaced() {
        let published = full();
        assert_eq!(published.publish("one more", true), Err(TooManyKeys {}));
        published.publish("0", false).unwrap();
        assert_eq!(snapshot(&published, &Items::keys(["0"])), [("0".to_owned(), false.into())]);
        assert_eq!(published.snapshot(&Items::All).len(), MOST_KEYS);
    }

    /// Its conversion tells whether it runs under the lock.
    struct Nosy<'a>(&'a Published);

    impl From<Nosy<'_>> for Value {
        fn from(nosy: Nosy<'_>) -> Self {
            nosy.0.values.is_locked().into()
        }
    }

    #[test]
    fn a16_no_user_code_runs_under_the_lock() {
        let published = Published::default();
        published.publish("locked", Nosy(&published)).unwrap();
        assert_eq!(snapshot(&published, &Items::All), [("locked".to_owned(), false.into())]);
    }
}
