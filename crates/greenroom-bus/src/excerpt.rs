//! Text from outside is cut if it is long before it is shown to people: a line of the log is no
//! place for a megabyte.

use std::borrow::Cow;

/// This many bytes are shown: more than any sentence or identifier that was written by hand.
const SHOWN: usize = 1_024;

/// The text, or its beginning and how much more there is.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    if text.len() <= SHOWN {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(SHOWN);
    Cow::Owned(format!("{}… ({} bytes more)", &text[..end], text.len() - end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(excerpt("short"), "short");
        let long = "ü".repeat(SHOWN);
        let shown = excerpt(&format!("x{long}")).into_owned();
        assert!(shown.len() < SHOWN + 40 && shown.ends_with("ü… (1026 bytes more)"), "{shown}");
    }
}
