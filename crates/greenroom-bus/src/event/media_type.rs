//! Media types as far as they decide how data is read.

use std::borrow::Cow;

/// The type of data without a content type: the default of the JSON format.
pub(crate) const JSON: &str = "application/json";

/// The media type in lower case, without parameters.
pub(crate) fn normal(declared: &str) -> Cow<'_, str> {
    let media = declared.split(';').next().unwrap_or_default().trim();
    match media.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(media.to_ascii_lowercase()),
        false => Cow::Borrowed(media),
    }
}

/// Whether a media type in its normal form is JSON: `application/json`, or any `+json`.
pub(crate) fn is_json(media: &str) -> bool {
    media.ends_with("/json") || media.ends_with("+json")
}
