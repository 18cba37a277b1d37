//! Who may post, as it is configured.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine, prelude::BASE64_STANDARD};
use greenroom_config::{Secret, duration, group, options, text, texts, units::DAY_MS, word, words};
use hyper::{HeaderMap, header::HeaderName};

options! {
    /// Who may post: exactly one.
    #[derive(Eq)]
    pub enum Access = "auth" {
        /// A token, or several, any of which is accepted: `authorization: Bearer TOKEN`. Take them
        /// from files or the environment. A reload reads them again.
        Bearer(Secret<Vec<String>>) as "bearer" = texts().secret();
        /// A signature of the body, as senders of webhooks make it.
        Signature(Signature) as "signature" = group();
    }
}

options! {
    /// HMAC of the body with SHA-256.
    #[derive(Eq)]
    pub struct Signature = "signature" {
        /// The header with the signature, for example `x-hub-signature-256`.
        header: String = text();
        /// The secret, or several, any of which is accepted.
        secret: Secret<Vec<String>> = texts().secret();
        /// Text before the signature in its header, for example `sha256=`; none by default.
        prefix: Option<String> = text().optional();
        /// The encoding of the signature.
        encoding: Encoding = word().default("hex");
        /// The time of signing, if that is part of the signed text.
        timestamp: Option<SignedTime> = group().optional();
    }
}

words! {
    /// How a signature is written.
    pub enum Encoding {
        /// Two digits a byte, in either case.
        Hex = "hex",
        /// Standard base64, with its padding.
        Base64 = "base64",
    }
}

options! {
    /// The signed text is then the time as in its header, a full stop, and the body.
    #[derive(Eq)]
    pub struct SignedTime = "timestamp" {
        /// The header with the time, in seconds since 1970.
        header: String = text();
        /// How far it may differ from the current time.
        tolerance: Duration = duration(1_000..=DAY_MS).default("5m");
    }
}

/// Why nobody could post so. It repeats no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAccess {
    /// There is no token or secret, so nobody could post.
    #[error("there is no {0}, so nobody could post")]
    None(&'static str),
    /// A token has no characters, or some that no header can carry.
    #[error("token {0} is empty, or has characters other than visible ASCII")]
    Token(usize),
    /// A secret has no characters.
    #[error("secret {0} is empty")]
    Secret(usize),
    /// It is no name of a header.
    #[error("{0:?} is no header name")]
    Header(String),
}

impl Access {
    /// Checks that a client could post with these settings.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn check(&self) -> Result<(), BadAccess> {
        match self {
            Self::Bearer(tokens) => check_tokens(tokens),
            Self::Signature(signature) => signature.check(),
        }
    }
}

fn check_tokens(tokens: &[String]) -> Result<(), BadAccess> {
    let is_good =
        |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    match tokens.iter().position(|token| !is_good(token)) {
        _ if tokens.is_empty() => Err(BadAccess::None("token")),
        Some(place) => Err(BadAccess::Token(place + 1)),
        None => Ok(()),
    }
}

impl Signature {
    fn check(&self) -> Result<(), BadAccess> {
        let time = self.timestamp.iter().map(|time| &time.header);
        for header in [&self.header].into_iter().chain(time) {
            if header.parse::<HeaderName>().is_err() {
                return Err(BadAccess::Header(header.clone()));
            }
        }
        match self.secret.iter().position(String::is_empty) {
            _ if self.secret.is_empty() => Err(BadAccess::None("secret")),
            Some(place) => Err(BadAccess::Secret(place + 1)),
            None => Ok(()),
        }
    }

    /// The one that a request has, if it is written as it has to be.
    pub(super) fn signature(&self, headers: &HeaderMap) -> Option<Vec<u8>> {
        let value = headers.get(&*self.header)?.as_bytes().trim_ascii();
        let written = value.strip_prefix(self.prefix.as_deref().unwrap_or_default().as_bytes())?;
        match self.encoding {
            Encoding::Hex => hex(written),
            Encoding::Base64 => BASE64_STANDARD.decode(written).ok(),
        }
    }

    /// What is signed beside the body; `None` for a request whose time is missing, or too far from
    /// now.
    pub(super) fn signed_time<'h>(
        &self,
        headers: &'h HeaderMap,
        now: SystemTime,
    ) -> Option<Option<&'h [u8]>> {
        let Some(rule) = &self.timestamp else { return Some(None) };
        let written = headers.get(&*rule.header)?;
        let seconds = written.to_str().ok()?.trim().parse().ok()?;
        let signed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        let apart = now.duration_since(signed).unwrap_or_else(|ahead| ahead.duration());
        (apart <= rule.tolerance).then(|| Some(written.as_bytes().trim_ascii()))
    }
}

fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    pairs.iter().map(byte).collect()
}
