//! An event while matchers look at it: its data is read when the first condition asks for a member
//! of it, and once for all of them.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::condition::FieldValue;
use crate::event::{Event, Field, NotJson, Pointers};

/// One event, and its parsed data.
pub(crate) struct Inspected<'e> {
    pub(super) event: &'e Event,
    /// All that conditions may ask for.
    pointers: &'e Pointers,
    found: OnceCell<Result<Vec<Option<&'e RawValue>>, NotJson>>,
}

impl<'e> Inspected<'e> {
    /// For matchers whose conditions ask for no more than these.
    pub(crate) fn new(event: &'e Event, pointers: &'e Pointers) -> Self {
        Self { event, pointers, found: OnceCell::new() }
    }

    /// The event's value there.
    pub(super) fn value(&self, field: Field) -> FieldValue<'e> {
        let Some(pointer) = field.pointer() else {
            return field.attribute(self.event).map_or(FieldValue::Missing, FieldValue::Attribute);
        };
        match self.found.get_or_init(|| self.find()) {
            Ok(found) => {
                let place = self.pointers.place(pointer);
                FieldValue::from_raw(place.and_then(|place| found.get(place).copied().flatten()))
            }
            Err(NotJson) => FieldValue::NotJson,
        }
    }

    fn find(&self) -> Result<Vec<Option<&'e RawValue>>, NotJson> {
        match self.event.json()? {
            Some(json) => self.pointers.find(json).map_err(|_| NotJson),
            None => Ok(Vec::new()),
        }
    }
}
