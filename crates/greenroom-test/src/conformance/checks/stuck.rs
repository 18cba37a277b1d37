//! An event whose handler does not end.

use super::super::connector::{Body, Item};

/// The id of the first event from this place on.
pub(super) fn one_of(items: &[Item], from: usize) -> Result<String, String> {
    let id = |item: &Item| match &item.body {
        Body::Event(event) => Some(event.id().to_owned()),
        Body::Malformed(_) | Body::Gap => None,
    };
    let found = items.iter().skip(from).find_map(id);
    found.ok_or_else(|| format!("the connector made {} items, too few", items.len()))
}
