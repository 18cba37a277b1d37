//! Dead letters of a store, as the admin listener and the commands show and change them.

pub(crate) mod change;
pub(crate) mod escaped;

use std::path::Path;

use greenroom_bus::store::letters::{By, Filter, LetterError, Letters, Order, Totals};
use serde_json::{Value, json};

/// The size at which a page ends, in bytes, however many letters were requested.
const PAGE: usize = 512 << 10;

/// A page of letters, in this order.
///
/// # Errors
/// They cannot be read.
pub(crate) fn page(
    letters: &Letters,
    filter: &Filter,
    order: Order,
    after: u64,
    limit: usize,
) -> Result<Value, LetterError> {
    let (totals, filter) = &counted(letters, filter)?;
    let (mut shown, mut bytes, mut last, mut more) = (Vec::new(), 0, after, true);
    // One at a time would be slow, all at once large: many texts may have to be cut.
    while more && shown.len() < limit && bytes < PAGE {
        let (some, rest) = letters.list(filter, order, last, (limit - shown.len()).min(50))?;
        more = rest;
        for letter in some {
            if bytes >= PAGE {
                more = true;
                break;
            }
            last = letter.number;
            let letter = json!(letter);
            bytes += letter.to_string().len();
            shown.push(letter);
        }
    }
    Ok(json!({ "letters": shown, "totals": totals, "after": more.then_some(last) }))
}

/// The letters, counted.
///
/// # Errors
/// They cannot be read.
pub(crate) fn groups(letters: &Letters, filter: &Filter, by: By) -> Result<Value, LetterError> {
    let (totals, filter) = counted(letters, filter)?;
    Ok(json!({ "groups": letters.groups(&filter, by)?, "totals": totals }))
}

/// Their number, and a filter that excludes later ones: the list then agrees with the number.
fn counted(letters: &Letters, filter: &Filter) -> Result<(Totals, Filter), LetterError> {
    let totals = letters.totals(filter)?;
    let upto = filter.upto.unwrap_or(u64::MAX).min(totals.newest);
    Ok((totals, Filter { upto: Some(upto), ..filter.clone() }))
}

/// Opens the store to read it.
///
/// # Errors
/// The error, and the next step.
pub(crate) fn open(path: &Path, unmasked: bool) -> Result<Letters, String> {
    let letters = Letters::open(path).map_err(|error| error.to_string())?;
    Ok(if unmasked { letters.unmasked() } else { letters })
}
