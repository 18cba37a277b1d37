//! Checks options by a table: for the tests of the crates that declare them.

use crate::{Yaml, options::Options, read};

/// An option, a good value, and bad values with one mistake each.
pub type Row<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Reads each value in a mapping that also holds `beside`, except for the row's own option. Each
/// option of `T` must have a row.
///
/// # Panics
/// At the first row that fails, and for an option without a row.
#[track_caller]
pub fn assert_options<T: Options>(beside: &[(&str, &str)], rows: &[Row<'_>]) {
    let with = |option: &str, value: &str| {
        let beside = beside.iter().filter(|(name, _)| *name != option);
        let beside: String = beside.map(|(name, value)| format!("{name}: {value}, ")).collect();
        read::<T>(Yaml, &format!("{{ {beside}{option}: {value} }}"))
    };
    for (option, good, bad) in rows {
        if let Err(problems) = with(option, good) {
            panic!("{option}: {good}\n{problems}");
        }
        for value in *bad {
            let mistakes = with(option, value).map_or_else(|problems| problems.errors(), |_| 0);
            assert_eq!(mistakes, 1, "{option}: {value}");
        }
    }
    for option in T::GROUP.built() {
        let has_row = rows.iter().any(|(name, ..)| option.is_named(name));
        assert!(has_row, "no row for `{}`", option.name);
    }
}
