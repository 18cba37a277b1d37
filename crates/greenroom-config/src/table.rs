//! Options held to a table: for the tests of those who declare them.

use crate::{Yaml, options::Options, read};

/// An option, a good value, and values of which each is one mistake.
pub type Row<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Reads each value in a mapping that holds `beside` as well, where the row is about another
/// option. Each option of `T` has to have a row.
///
/// # Panics
/// At the first row that does not hold, and for an option without one.
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
