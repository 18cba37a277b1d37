//! Names of topics, and patterns of them, before any broker is asked.

use crate::unusable::Unusable;

/// The longest name, in bytes.
const LONGEST: usize = 249;

/// Whether a topic can have this name, which the option of this name has. Source: Kafka's
/// `org.apache.kafka.common.internals.Topic`.
pub(crate) fn check_name(option: &str, name: &str) -> Result<(), Unusable> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_legal);
    if is_name && !matches!(name, "." | "..") {
        return Ok(());
    }
    let why = "no topic can have this name: 1 to 249 letters, digits, `.`, `_` and `-`, but neither \
               `.` nor `..`";
    Err(Unusable::option(option, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f10_a_name_that_no_topic_can_have_is_refused() {
        for name in ["orders", "a.b_c-9", "...", &"x".repeat(LONGEST)] {
            assert_eq!(check_name("topic", name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "a b", "a b/c", "ä", "a\n", "a^", &"x".repeat(LONGEST + 1)] {
            assert!(check_name("topic", name).is_err(), "{name}");
        }
    }
}
