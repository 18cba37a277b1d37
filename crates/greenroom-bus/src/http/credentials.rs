//! Credentials of requests: headers of the configuration, and `auth`.

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::{
    auth::{Auth, BasicAuth},
    config::TargetConfig,
};

/// Headers that are written for each event, or belong to the connection.
const RESERVED: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "greenroom-attempt",
    "greenroom-fence",
    "host",
    "idempotency-key",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Why a header cannot be configured. It does not repeat its value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// The name has characters that no header name may have, or none.
    #[error("{0:?} is no header name")]
    Name(String),
    /// The header is written for each event, or belongs to the connection.
    #[error("the header {0:?} is written by greenroom itself")]
    Reserved(String),
    /// The value cannot be sent.
    #[error("the value of the header {0:?} has a line break or a control character")]
    Value(String),
}

/// Whether a header can be added to each request: `ce-*`, `content-type` and the like are written
/// for each event.
///
/// ```
/// use greenroom_bus::http::{BadHeader, check_header};
///
/// assert_eq!(check_header("x-team", "blue"), Ok(()));
/// assert_eq!(check_header("ce-id", "1"), Err(BadHeader::Reserved("ce-id".into())));
/// ```
///
/// # Errors
/// The problem with it.
pub fn check_header(name: &str, value: &str) -> Result<(), BadHeader> {
    header(name, value).map(drop)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), BadHeader> {
    let key = HeaderName::try_from(name).map_err(|_| BadHeader::Name(name.to_owned()))?;
    if key.as_str().starts_with("ce-") || RESERVED.contains(&key.as_str()) {
        return Err(BadHeader::Reserved(name.to_owned()));
    }
    let value = HeaderValue::try_from(value).map_err(|_| BadHeader::Value(name.to_owned()))?;
    Ok((key, secret(value)))
}

/// No log shows it.
fn secret(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// Why credentials cannot be sent. It does not repeat them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAuth {
    /// The target would take the rest for the password.
    #[error("the user has a colon in it")]
    Colon,
    /// A token is letters, digits and `-._~+/=` (RFC 6750).
    #[error("the token has a character in it that no token has, such as a space or a line break")]
    Token,
}

/// Whether these can be sent.
///
/// # Errors
/// The problem with them.
pub fn check_auth(auth: &Auth) -> Result<(), BadAuth> {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    match auth {
        Auth::Basic(basic) if basic.user.contains(':') => Err(BadAuth::Colon),
        Auth::Bearer(token) if token.is_empty() || !token.bytes().all(is_of_token) => {
            Err(BadAuth::Token)
        }
        _ => Ok(()),
    }
}

fn authorization(auth: &Auth) -> Result<HeaderValue, String> {
    check_auth(auth).map_err(|why| format!("http: in `auth`, {why}"))?;
    let text = match auth {
        Auth::Basic(BasicAuth { user, password }) => {
            format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", user.0, password.0)))
        }
        Auth::Bearer(token) => format!("Bearer {}", token.0),
    };
    // All of it is printable ASCII.
    let value =
        HeaderValue::try_from(text).map_err(|_| "http: `auth` cannot be sent".to_owned())?;
    Ok(secret(value))
}

/// The credentials of the URL and the headers from the configuration, which win; all marked as
/// secret.
///
/// # Errors
/// A sentence for the operator; it does not repeat the value.
pub(super) fn headers(of_url: HeaderMap, config: &TargetConfig) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(config.headers.len() + 2);
    for (name, value) in &config.headers {
        let (key, value) =
            header(name, value).map_err(|why| format!("http: in `headers`, {why}"))?;
        map.append(key, value);
    }
    if let Some(auth) = &config.auth {
        let twice = match () {
            () if map.contains_key(AUTHORIZATION) => Some("a header `authorization`"),
            () if of_url.contains_key(AUTHORIZATION) => Some("credentials in the URL"),
            () => None,
        };
        if let Some(other) = twice {
            return Err(format!("http: there is `auth` and {other}; leave one of them out"));
        }
        map.insert(AUTHORIZATION, authorization(auth)?);
    }
    for (key, value) in of_url.into_iter().filter_map(|(key, value)| Some((key?, value))) {
        map.entry(key).or_insert(secret(value));
    }
    Ok(map)
}

/// Whether requests carry credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identification {
    /// By `auth`, by the URL, by a header `authorization` or by a certificate.
    Known,
    /// Perhaps by another header, or by the query of the URL, whose meaning is unknown here.
    Unknown,
    /// By nothing.
    Missing,
}

impl Identification {
    /// Whether requests with these headers, which the configuration adds, carry credentials.
    pub(super) fn detect(headers: &HeaderMap, has_query: bool, config: &TargetConfig) -> Self {
        match () {
            () if headers.contains_key(AUTHORIZATION) => Self::Known,
            () if config.tls.identity.is_some() => Self::Known,
            () if has_query || !headers.is_empty() => Self::Unknown,
            () => Self::Missing,
        }
    }
}
