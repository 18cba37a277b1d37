//! Suggestions: the known name that looks most like an unknown one.

/// The least similarity of two words, if most of their letters are in place.
const ALIKE: f64 = 0.8;

/// The known word that was probably meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(word);
    known
        .into_iter()
        .filter_map(|name| Some((likeness(&wanted, &folded(name))?, name)))
        // The first of those that are equally similar.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, name)| name)
}

/// The suggestion as a sentence. It points out letters that only look Latin: the two words may look
/// the same.
pub fn did_you_mean(word: &str, name: &str) -> String {
    match word.chars().find(|c| latin(*c).is_some()) {
        Some(other) => format!("did you mean `{name}`? `{other}` is not a Latin letter"),
        None => format!("did you mean `{name}`?"),
    }
}

/// The suggestion for a word, if a known one is similar.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|name| did_you_mean(word, name))
}

/// The similarity of two words, from 0 to 1; `None` if one is unlikely to be meant by the other.
fn likeness(one: &str, other: &str) -> Option<f64> {
    let letters = one.chars().count().max(other.chars().count());
    let slips = strsim::osa_distance(one, other);
    let most = match letters {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    let alike = strsim::jaro_winkler(one, other);
    let share = 1.0 - slips as f64 / letters.max(1) as f64;
    if is_short_for(one, other) {
        return Some(alike.max(share).max(SHORT_FOR));
    }
    (slips <= most || (alike > ALIKE && letters > 2)).then(|| alike.max(share))
}

/// The least similarity of a word and its abbreviation.
const SHORT_FOR: f64 = 0.9;

/// `cmd` is short for `command`.
fn is_short_for(short: &str, word: &str) -> bool {
    let mut rest = word.chars();
    let ends = short.chars().next() == word.chars().next()
        && short.chars().next_back() == word.chars().next_back();
    short.len() > 2 && ends && short.chars().all(|c| rest.any(|other| other == c))
}

/// Treats upper and lower case, `-` and `_`, and letters that look the same as equal.
fn folded(word: &str) -> String {
    let lower = word.trim().chars().flat_map(char::to_lowercase);
    lower.map(|c| if c == '-' { '_' } else { latin(c).unwrap_or(c) }).collect()
}

/// The Latin letter that a Cyrillic or Greek one looks like.
fn latin(c: char) -> Option<char> {
    Some(match c {
        'а' | 'А' | 'α' => 'a',
        'в' | 'В' => 'b',
        'с' | 'С' => 'c',
        'е' | 'Е' | 'ё' => 'e',
        'н' | 'Н' => 'h',
        'і' | 'І' | 'ι' => 'i',
        'ј' => 'j',
        'к' | 'К' | 'κ' => 'k',
        'м' | 'М' => 'm',
        'п' | 'П' => 'n',
        'о' | 'О' | 'ο' => 'o',
        'р' | 'Р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'Т' | 'τ' => 't',
        'у' | 'У' => 'y',
        'х' | 'Х' | 'χ' => 'x',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_near_and_other_words_are_not() {
        let known = ["default", "erp", "web", "adaptive", "true"];
        for (word, expected) in [
            ("defalt", Some("default")),
            ("Default", Some("default")),
            ("defaults", Some("default")),
            ("epr", Some("erp")),
            ("eпр", Some("erp")),
            ("еrр", Some("erp")),
            ("adaptiv", Some("adaptive")),
            ("ture", Some("true")),
            ("adptv", Some("adaptive")),
            ("wb", Some("web")),
            ("other", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn letters_that_only_look_the_same_are_named() {
        let found = suggestion("еrp", ["erp"]).unwrap();
        assert_eq!(found, "did you mean `erp`? `е` is not a Latin letter");
    }
}
