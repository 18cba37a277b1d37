//! Who may post, as it is configured.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use greenroom_config::{duration, options, text, units::DAY_MS, words};
use hyper::{HeaderMap, header::HeaderName};

/// Who may post.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Access {
    /// Any client that can connect, except a page of a browser, which says so by the header
    /// `origin`.
    #[default]
    Anybody,
    /// Who has one of these tokens: `authorization: Bearer TOKEN`. Several, so that a new one can
    /// be handed out before the old one goes.
    Bearer(Vec<String>),
    /// Who has signed the body.
    Signature(Signature),
}

/// How a body is signed: HMAC with SHA-256, as webhooks do.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    /// The header that has the signature, for example `x-hub-signature-256`.
    pub header: String,
    /// The secrets, each of which is good.
    pub secrets: Vec<String>,
    /// What stands before the signature in its header, for example `sha256=`.
    pub prefix: String,
    /// How the signature is written.
    pub encoding: Encoding,
    /// When it was signed, where that is told and signed as well.
    pub time: Option<SignedTime>,
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
    /// What is signed then is the time as it stands in its header, a full stop, and the body.
    #[derive(Eq)]
    pub struct SignedTime = "timestamp" {
        /// The header that has the time, in seconds since 1970.
        header: String = text();
        /// How far it may be from now.
        tolerance: Duration = duration(1_000..=DAY_MS).default("5m");
    }
}

/// Neither tokens nor secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anybody => f.write_str("Anybody"),
            Self::Bearer(tokens) => write!(f, "Bearer({} hidden)", tokens.len()),
            Self::Signature(signature) => signature.fmt(f),
        }
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature")
            .field("header", &self.header)
            .field("prefix", &self.prefix)
            .field("encoding", &self.encoding)
            .field("time", &self.time)
            .finish_non_exhaustive()
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
            Self::Anybody => Ok(()),
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
        let time = self.time.iter().map(|time| &time.header);
        for header in [&self.header].into_iter().chain(time) {
            if header.parse::<HeaderName>().is_err() {
                return Err(BadAccess::Header(header.clone()));
            }
        }
        match self.secrets.iter().position(String::is_empty) {
            _ if self.secrets.is_empty() => Err(BadAccess::None("secret")),
            Some(place) => Err(BadAccess::Secret(place + 1)),
            None => Ok(()),
        }
    }

    /// The one that a request has, if it is written as it has to be.
    pub(super) fn signature(&self, headers: &HeaderMap) -> Option<Vec<u8>> {
        let value = headers.get(&*self.header)?.as_bytes().trim_ascii();
        let written = value.strip_prefix(self.prefix.as_bytes())?;
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
        let Some(rule) = &self.time else { return Some(None) };
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
