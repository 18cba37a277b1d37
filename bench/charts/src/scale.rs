//! The ends of a logarithmic axis, and what stands at its marks.

use std::ops::Range;

/// From a power of ten at or below the least to one above the greatest; `None`
/// where nothing can be shown.
pub fn decades(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
    let least = values.iter().copied().reduce(f64::min)?;
    let greatest = values.iter().copied().reduce(f64::max)?;
    Some(10_f64.powf(least.log10().floor())..10_f64.powf((greatest * 1.05).log10().ceil()))
}

/// A number as short as it can be told: `0.05`, `3.2`, `250`, `64k`, `10M`.
pub fn short(value: f64) -> String {
    let cut = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    match value {
        value if value >= 1e6 => format!("{}M", cut(format!("{:.1}", value / 1e6))),
        value if value >= 1e4 => format!("{}k", cut(format!("{:.1}", value / 1e3))),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => cut(format!("{value:.2}")),
        value => cut(format!("{value:.4}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_goes_from_a_power_of_ten_to_one() {
        let ends = |values: &[f64]| decades(values.iter().copied());
        let near = |ends: Option<Range<f64>>, low: f64, high: f64| {
            ends.is_some_and(|ends| {
                (ends.start / low - 1.0).abs() < 1e-9 && (ends.end / high - 1.0).abs() < 1e-9
            })
        };
        assert!(near(ends(&[0.2, 70.0]), 0.1, 100.0));
        assert!(near(ends(&[100.0]), 100.0, 1_000.0));
        assert!(ends(&[f64::NAN, 0.0]).is_none());
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.05, 3.2, 10.0, 250.0, 1_000.0, 65_536.0, 1e7].map(short);
        assert_eq!(shown, ["0.05", "3.2", "10", "250", "1000", "65.5k", "10M"]);
    }
}
