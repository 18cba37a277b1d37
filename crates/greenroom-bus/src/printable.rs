//! Text from elsewhere, made fit for a terminal and a log.

use std::borrow::Cow;

/// Escapes every character that a terminal would obey or a reader would not see: control
/// characters, including the escape sequences of terminals, and [hidden](is_hidden) ones.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            control if control.is_control() => shown.extend(control.escape_debug()),
            hidden if is_escaped(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is invisible, or changes the direction of the following text, so that it
/// reads as another one (CVE-2021-42574). The joiner of emoji is one of them.
pub fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{61C}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}'
    )
}

fn is_escaped(character: char) -> bool {
    is_hidden(character) || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u02_what_a_terminal_would_obey_is_shown_instead() {
        let text = "a\0b\u{1b}[31mred\u{1b}[0m\tc\rd\u{7f}\u{9b}2J\u{202e}txet";
        let shown = r"a\0b\u{1b}[31mred\u{1b}[0m\tc\rd\u{7f}\u{9b}2J\u{202e}txet";
        assert_eq!(printable(text), shown);
        assert!(!printable(text).contains(char::is_control));
    }

    #[test]
    fn u02_what_nobody_sees_and_what_turns_a_text_around_is_shown_by_its_number() {
        for hidden in
            "\u{61c}\u{200b}\u{200d}\u{200e}\u{202a}\u{2060}\u{2066}\u{2069}\u{feff}".chars()
        {
            let shown = format!("a{}b", hidden.escape_unicode());
            assert_eq!(printable(&format!("a{hidden}b")), shown);
        }
    }

    #[test]
    fn u02_text_is_left_as_it_is() {
        assert!(matches!(printable("größe: 5 µm, \"ok\" \\ 漢字"), Cow::Borrowed(_)));
    }
}
