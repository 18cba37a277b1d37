//! One measurement, as a row of the table.

use super::{
    load::Load,
    measure::{self, BenchSide, SendPace},
    table::Row,
};

/// What a side does as fast as it can and, where a rate is given, at that.
pub(super) fn row(load: &Load, side: BenchSide, rate: Option<f64>) -> Result<Row, String> {
    let row = Row::new(side, load, &measure::measure(load, side, SendPace::Unpaced)?);
    Ok(match rate {
        None => row,
        Some(rate) => row.open_loop(rate, &measure::measure(load, side, SendPace::At(rate))?),
    })
}
