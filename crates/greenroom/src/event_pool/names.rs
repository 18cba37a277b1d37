//! How keys and words are spelt, and what somebody may have meant who has misspelt one.

/// True where it is the name, in snake case or in camel case: `pool_size`, `poolSize`.
pub(super) fn is_spelling(name: &str, written: &str) -> bool {
    name == written || camel_case(name) == written
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(part.len().min(1));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

/// The name that looks most like what was written, if one does.
pub(super) fn nearest(
    written: &str,
    names: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let written = plain(written);
    let near = names.into_iter().map(|name| (distance(&plain(name), &written), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    // One letter in three may be wrong: more is another word.
    (distance * 3 <= name.len()).then_some(name)
}

/// Without what spellings differ in.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How many letters have to be put in, left out or changed (Levenshtein 1966).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.iter().enumerate() {
        let (mut diagonal, mut left) = (line, line + 1);
        for (column, b) in to.iter().enumerate() {
            let above = row[column + 1];
            let here = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            row[column] = left;
            (diagonal, left) = (above, here);
        }
        row[to.len()] = left;
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_the_letters_that_differ() {
        let of = |from: &str, to: &str| distance(&plain(from), &plain(to));
        for (from, to, expected) in
            [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(of(from, to), expected, "{from} {to}");
        }
        assert_eq!(of("pool_sise", "poolSize"), 1);
    }

    #[test]
    fn who_misspells_a_name_is_told_it_and_who_means_another_is_not() {
        let names = ["pool_size", "inbox_size", "engine"];
        for (written, expected) in [
            ("poolsize", Some("pool_size")),
            ("POOL-SIZE", Some("pool_size")),
            ("inboxsise", Some("inbox_size")),
            ("enigne", Some("engine")),
            ("workers", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names), expected, "{written}");
        }
    }
}
