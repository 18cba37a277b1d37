//! What greenroom is asked for beside each system: the target, and the floor below
//! which something is wrong.

use measure::{Distance, median};

use crate::{rounds::Series, rows::Row};

/// How many times better greenroom must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    pub floor: f64,
    pub target: f64,
}

const fn at_least(floor: f64, target: f64) -> Limits {
    Limits { floor, target }
}

/// Of peers in other programs, half of the target is the floor.
const fn half_of(target: f64) -> Limits {
    Limits { floor: target / 2.0, target }
}

/// Rows, a word that the system's name begins with, a word that it must have as
/// well, and what is asked.
const LIMITS: [(&[&str], &str, &str, Limits); 14] = [
    (&["A4", "A256"], "tokio mpsc", "", at_least(5.0, 7.0)),
    (&["A4", "A256"], "flume", "", at_least(1.2, 2.0)),
    (&["A4", "A256"], "kanal", "", at_least(1.2, 2.0)),
    (&["A4", "A256"], "ractor", "", half_of(75.0)),
    (&["A4", "A256"], "kameo", "pool", half_of(45.0)),
    (&["A4", "A256"], "ergo", "", half_of(20.0)),
    (&["A4", "A256"], "caf", "", half_of(8.0)),
    (&["A4", "A256"], "gopipe", "", half_of(12.0)),
    (&["A4", "A256"], "hollywood", "", half_of(5.0)),
    (&["B-uniform", "B-zipf"], "tokio mpsc", "", at_least(1.5, 2.5)),
    (&["B-uniform", "B-zipf"], "ractor", "", half_of(200.0)),
    (&["C"], "tokio mpsc", "", at_least(20.0, 45.0)),
    (&["D1"], "tokio mpsc", "", at_least(1.0, 1.1)),
    (&["D64"], "tokio mpsc", "", at_least(1.2, 1.5)),
];

/// `None` where nothing is asked.
pub fn limits(row: &str, system: &str) -> Option<Limits> {
    let system = system.to_lowercase();
    let is_meant = |(rows, begins, has, _): &&(&[&str], &str, &str, Limits)| {
        rows.contains(&row) && system.starts_with(begins) && system.contains(has)
    };
    LIMITS.iter().find(is_meant).map(|(.., limits)| *limits)
}

/// How the pairs stand to it. Those of near cores are judged where there are any.
pub fn verdict(limits: Limits, row: &Row, series: &Series) -> &'static str {
    let near = series.compared(row, Some(Distance::Near)).ratios;
    let (ratios, is_near) = match near.is_empty() {
        true => (series.compared(row, None).ratios, false),
        false => (near, true),
    };
    let ratio = median(&ratios);
    match (ratio.is_nan(), ratio >= limits.target, ratio >= limits.floor, is_near) {
        (true, ..) => "no figure",
        (_, true, _, true) => "target",
        (_, true, _, false) => "target, no near round",
        (_, _, true, true) => "floor",
        (_, _, true, false) => "floor, no near round",
        (_, _, false, true) => "BELOW FLOOR",
        (_, _, false, false) => "BELOW FLOOR, no near round",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::tests::{far, measured, near};

    #[test]
    fn limits_are_found_by_the_beginning_of_a_name() {
        assert_eq!(limits("A4", "tokio mpsc"), Some(at_least(5.0, 7.0)));
        assert_eq!(limits("A256", "ractor queuer"), Some(half_of(75.0)));
        assert_eq!(limits("A4", "kameo ActorPool"), Some(at_least(22.5, 45.0)));
        assert_eq!(limits("A4", "kameo actors"), None);
        assert_eq!(limits("A4-460ns", "tokio mpsc"), None);
        assert_eq!(limits("D1", "CAF actor_pool"), None);
    }

    #[test]
    fn near_pairs_are_judged_where_there_are_any() {
        let verdict_of = |own: [_; 3], other: [_; 3]| {
            let (measured, _) = measured("A4", vec![own.to_vec(), other.to_vec()], 2);
            verdict(at_least(5.0, 7.0), measured.row, &measured.series[0])
        };
        let other = [near(1.0), near(10.0), far(10.0)];
        assert_eq!(verdict_of([near(1.0), near(80.0), far(10.0)], other.clone()), "target");
        assert_eq!(verdict_of([near(1.0), near(60.0), far(10.0)], other.clone()), "floor");
        assert_eq!(verdict_of([near(1.0), near(40.0), far(90.0)], other.clone()), "BELOW FLOOR");
        let all_far = [near(1.0), far(80.0), far(80.0)];
        assert_eq!(verdict_of(all_far, other), "target, no near round");
    }
}
