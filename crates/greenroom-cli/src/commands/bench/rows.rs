//! One measurement, as a row of the table.

use super::{
    load::Load,
    measure::{self, Pace, Side},
    table::Row,
};

/// What a side does as fast as it can and, where a rate is given, at that.
pub(super) fn row(load: &Load, side: Side, rate: Option<f64>) -> Result<Row, String> {
    let row = Row::new(side, load, &measure::measure(load, side, Pace::Unpaced)?);
    Ok(match rate {
        None => row,
        Some(rate) => row.open_loop(rate, &measure::measure(load, side, Pace::At(rate))?),
    })
}
