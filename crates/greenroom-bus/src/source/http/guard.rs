//! Which clients may post, decided for each request. Comparisons take the same time whatever the
//! input.

use std::time::SystemTime;

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, ORIGIN},
};
use ring::{
    hmac::{self, HMAC_SHA256, Key, Tag},
    rand::SystemRandom,
};

use super::access::{Access, Signature};

/// Decides which clients may post.
pub(super) enum Guard {
    Anybody,
    /// Tokens are compared by a keyed hash with a key of this process: neither the length nor the
    /// correct part of a token shows in the timing.
    Bearer {
        key: Key,
        tags: Vec<Tag>,
    },
    Signature {
        keys: Vec<Key>,
        rule: Signature,
    },
}

/// Why a request is refused. The reason goes to the operator's log, and not to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The client is not identified. True: by a token, which the answer asks for.
    Unknown { token: bool },
    /// A page of a browser.
    Page,
}

impl Guard {
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(access: Option<&Access>) -> Result<Self, String> {
        Ok(match access {
            None => Self::Anybody,
            Some(Access::Bearer(tokens)) => {
                let key = Key::generate(HMAC_SHA256, &SystemRandom::new())
                    .map_err(|_| "the system has no random numbers".to_owned())?;
                let tags = tokens.iter().map(|token| hmac::sign(&key, token.as_bytes())).collect();
                Self::Bearer { key, tags }
            }
            Some(Access::Signature(rule)) => {
                let key = |secret: &String| Key::new(HMAC_SHA256, secret.as_bytes());
                Self::Signature { keys: rule.secret.iter().map(key).collect(), rule: rule.clone() }
            }
        })
    }

    /// The checks that are possible before the body is read.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        match self {
            Self::Anybody if headers.contains_key(ORIGIN) => Err(Refused::Page),
            Self::Anybody => Ok(()),
            Self::Bearer { key, tags } => {
                let shown = bearer(headers).map(|token| hmac::sign(key, token));
                let is_one = |shown: &Tag| {
                    let is_this = |tag: &&Tag| same(tag.as_ref(), shown.as_ref());
                    tags.iter().filter(is_this).count() > 0
                };
                shown.filter(is_one).map(drop).ok_or(Refused::Unknown { token: true })
            }
            Self::Signature { rule, .. } => {
                rule.signature(headers).map(drop).ok_or(Refused::Unknown { token: false })
            }
        }
    }

    /// The checks on the body.
    pub(super) fn admit_body(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), Refused> {
        let Self::Signature { keys, rule } = self else { return Ok(()) };
        let refused = Refused::Unknown { token: false };
        let signature = rule.signature(headers).ok_or(refused)?;
        let time = rule.signed_time(headers, now).ok_or(refused)?;
        let is_signed = |key: &&Key| {
            let mut signed = hmac::Context::with_key(key);
            if let Some(time) = time {
                signed.update(time);
                signed.update(b".");
            }
            signed.update(body);
            same(signed.sign().as_ref(), &signature)
        };
        keys.iter().find(is_signed).map(drop).ok_or(refused)
    }
}

/// Takes as long wherever two texts of one length differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differ) == 0
}

/// The token of credentials of the scheme `Bearer`, which may be written in any case (RFC 9110,
/// 11.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let credentials = headers.get(AUTHORIZATION)?.as_bytes();
    let space = credentials.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = credentials.split_at(space);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use base64::{Engine, prelude::BASE64_STANDARD};
    use greenroom_config::Secret;

    use super::*;
    use crate::source::http::{Encoding, SignedTime};

    /// Of GitHub's documentation of webhooks.
    const SIGNED: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn github(time: Option<SignedTime>) -> Signature {
        Signature {
            header: "X-Hub-Signature-256".into(),
            secret: Secret(vec!["the next one".into(), "It's a Secret to Everybody".into()]),
            prefix: Some("sha256=".into()),
            encoding: Encoding::Hex,
            timestamp: time,
        }
    }

    #[test]
    fn b02_any_of_several_tokens_is_good_and_no_other() {
        let guard =
            Guard::new(Some(&Access::Bearer(Secret(vec!["old".into(), "new".into()])))).unwrap();
        let admit = |value: &str| guard.admit(&headers(&[("authorization", value)]));
        for good in ["Bearer old", "bearer new", "BEARER  new"] {
            assert_eq!(admit(good), Ok(()), "{good}");
        }
        let unknown = Err(Refused::Unknown { token: true });
        for bad in
            ["Bearer", "Bearer ", "Bearer ol", "Bearer oldd", "Basic old", "old", "Bearer OLD"]
        {
            assert_eq!(admit(bad), unknown, "{bad}");
        }
        assert_eq!(guard.admit(&HeaderMap::new()), unknown);
    }

    #[test]
    fn b02_a_signature_is_that_of_the_body_by_one_of_the_secrets() {
        let guard = Guard::new(Some(&Access::Signature(github(None)))).unwrap();
        let now = SystemTime::now();
        let signed = headers(&[("x-hub-signature-256", SIGNED)]);
        assert_eq!(guard.admit(&signed), Ok(()));
        assert_eq!(guard.admit_body(&signed, b"Hello, World!", now), Ok(()));
        let unknown = Err(Refused::Unknown { token: false });
        assert_eq!(guard.admit_body(&signed, b"Hello, World", now), unknown);
        for bad in ["sha256=", "sha256=75", "sha256=7571zz", "757107ea", "sha1=757107", ""] {
            let headers = headers(&[("x-hub-signature-256", bad)]);
            assert_eq!(guard.admit_body(&headers, b"Hello, World!", now), unknown, "{bad}");
        }
        assert_eq!(guard.admit(&HeaderMap::new()), unknown);
    }

    #[test]
    fn b02_a_signed_time_bounds_how_long_a_message_is_good() {
        let time = SignedTime { header: "x-time".into(), tolerance: Duration::from_secs(300) };
        let rule = Signature { encoding: Encoding::Base64, prefix: None, ..github(Some(time)) };
        let key = Key::new(HMAC_SHA256, rule.secret[1].as_bytes());
        let signature = BASE64_STANDARD.encode(hmac::sign(&key, b"1000.body"));
        let guard = Guard::new(Some(&Access::Signature(rule))).unwrap();
        let signed = headers(&[("x-hub-signature-256", &signature), ("x-time", "1000")]);
        let admit =
            |now| guard.admit_body(&signed, b"body", UNIX_EPOCH + Duration::from_secs(now)).is_ok();
        assert!(admit(700) && admit(1_000) && admit(1_300));
        assert!(!admit(699) && !admit(1_301));
        for time in ["1001", "", "-1", "99999999999999999999"] {
            let other = headers(&[("x-hub-signature-256", &signature), ("x-time", time)]);
            assert!(guard.admit_body(&other, b"body", UNIX_EPOCH).is_err(), "{time}");
        }
        let without = headers(&[("x-hub-signature-256", &signature)]);
        assert!(guard.admit_body(&without, b"body", UNIX_EPOCH).is_err());
    }

    #[test]
    fn b02_without_credentials_a_page_of_a_browser_is_refused() {
        let guard = Guard::new(None).unwrap();
        assert_eq!(guard.admit(&HeaderMap::new()), Ok(()));
        let page = headers(&[("origin", "http://example.org")]);
        assert_eq!(guard.admit(&page), Err(Refused::Page));
    }
}
