//! A bar chart of each row.

use std::path::Path;

use charts::{Bar, Bars};

use crate::{
    Failure,
    protocol::System,
    rounds::{Measured, Outcome, Spread},
    table::{ordered, values},
};

/// Writes `A4.svg` and so on; nothing where no system has a figure.
pub fn plot(
    measured: &Measured,
    systems: &[&System],
    caption: &[String],
    folder: &Path,
) -> Result<(), Failure> {
    let row = measured.row;
    let mut bars: Vec<_> = bar(systems[measured.own], &measured.own_outcomes(), true)
        .into_iter()
        .chain(
            ordered(measured)
                .into_iter()
                .filter_map(|series| bar(systems[series.who], &series.outcomes(), false)),
        )
        .collect();
    if bars.is_empty() {
        return Ok(());
    }
    bars.sort_by(|one, other| match row.more_is_better() {
        true => other.median.total_cmp(&one.median),
        false => one.median.total_cmp(&other.median),
    });
    let better = if row.more_is_better() { "more is better" } else { "less is better" };
    let axis = format!("{} ({better}; logarithmic; median, least and greatest)", row.unit());
    let title = format!("{}: {}", row.name, row.what);
    let caption = caption.to_vec();
    Bars { title, axis, bars, caption }.write(&folder.join(format!("{}.svg", row.name)))
}

fn bar(system: &System, outcomes: &[&Outcome], own: bool) -> Option<Bar> {
    let Spread { median, min, max } = Spread::of(&values(outcomes))?;
    Some(Bar { name: format!("{} {}", system.name, system.version), median, min, max, own })
}
