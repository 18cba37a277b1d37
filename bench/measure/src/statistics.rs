//! What few figures come to, and how one is shown.

/// The middle value, or the mean of the middle two; not a number for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => f64::NAN,
        (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (middle, _) => sorted[middle],
    }
}

/// The least; not a number for none.
pub fn min(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::min).unwrap_or(f64::NAN)
}

/// The greatest; not a number for none.
pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::max).unwrap_or(f64::NAN)
}

/// Four digits that count, as more would be noise.
pub fn figure(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 10.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 9.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 9.0, 2.0]), 3.0);
    }

    #[test]
    fn nothing_has_no_median_and_no_ends() {
        assert!([median, min, max].into_iter().all(|of| of(&[]).is_nan()));
        assert_eq!((min(&[2.0, -1.0, 7.0]), max(&[2.0, -1.0, 7.0])), (-1.0, 7.0));
    }

    #[test]
    fn figures_have_four_digits() {
        let shown = [0.1234, 12.345, 123.45, 22_600.4].map(figure);
        assert_eq!(shown, ["0.123", "12.35", "123.5", "22600"]);
    }
}
