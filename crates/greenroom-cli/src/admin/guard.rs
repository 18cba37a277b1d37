//! Who may ask (O09): without a token only programs of this machine, and never a web page of somebody else.
//!
//! A browser on this machine can reach the listener, and does so for any page that it shows. Such a page is kept out twice: it
//! has another origin than the listener, so nothing is changed for it, and a name of its own that it points at this machine
//! (DNS rebinding) is no name of the listener, so it can read nothing either.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, StatusCode, header};

use super::answer::Refusal;
use crate::config::AdminConfig;

/// Decides about requests.
pub(super) struct Guard {
    token: Option<String>,
}

impl Guard {
    pub(super) fn new(config: &AdminConfig) -> Self {
        Self { token: config.token.as_deref().cloned() }
    }

    /// Lets a request in, or says why not. `open` is for what anybody may ask: whether greenroom is well.
    pub(super) fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        path: &str,
        open: bool,
    ) -> Result<(), Refusal> {
        if !open {
            self.authorised(headers, path)?;
        }
        if method != Method::GET && method != Method::HEAD {
            same_origin(headers, path)?;
        }
        Ok(())
    }

    /// True where the request may see everything.
    pub(super) fn trusts(&self, headers: &HeaderMap) -> bool {
        self.authorised(headers, "").is_ok()
    }

    fn authorised(&self, headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return named_as_this_machine(headers, path) };
        let shown = text(headers, header::AUTHORIZATION);
        let shown = shown.and_then(bearer);
        if shown.is_some_and(|shown| same(shown.trim().as_bytes(), token.as_bytes())) {
            return Ok(());
        }
        let what = if shown.is_some() { "the token is wrong" } else { "a token is needed" };
        let next = "send the `admin.token` of the configuration as `authorization: Bearer TOKEN`; \
                    `greenroom why` takes it from GREENROOM_ADMIN_TOKEN";
        Err(Refusal::new(StatusCode::UNAUTHORIZED, what, path, next))
    }
}

/// The token of credentials of the scheme `Bearer`, which may be written in any case (RFC 9110,
/// 11.1).
fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, token) = credentials.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Takes as long wherever two texts of one length differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A host without its port.
fn host(headers: &HeaderMap) -> Option<&str> {
    let host = text(headers, header::HOST)?;
    let end = match host.strip_prefix('[') {
        Some(rest) => return rest.split_once(']').map(|(address, _)| address),
        None => host.rfind(':').unwrap_or(host.len()),
    };
    Some(&host[..end])
}

/// An address cannot be pointed elsewhere; of names, only one is known to mean this machine.
fn named_as_this_machine(headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
    match host(headers) {
        Some(host) if host == "localhost" || host.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the listener is not called by this name",
            path,
            "ask it by its address or as `localhost`, or set `admin.token`",
        )),
    }
}

/// Programs send no origin; a browser says of which page it is.
fn same_origin(headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
    let own = text(headers, header::HOST).map(|host| format!("http://{host}"));
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    if origin.to_str().is_ok_and(|origin| own.as_deref() == Some(origin)) {
        return Ok(());
    }
    let next = "ask from a page of the listener itself, or with a program such as curl";
    let what = "a page of another origin may change nothing";
    Err(Refusal::new(StatusCode::FORBIDDEN, what, path, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn status(guard: &Guard, method: Method, pairs: &[(&'static str, &'static str)]) -> u16 {
        let admitted = guard.admit(&method, &headers(pairs), "/api/pools", false);
        admitted.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn o09_without_a_token_it_is_asked_by_address_only() {
        let guard = Guard { token: None };
        for host in ["127.0.0.1:7070", "localhost:7070", "localhost", "[::1]:7070", "127.0.0.1"] {
            assert_eq!(status(&guard, Method::GET, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "evil.example:7070", "localhost.evil.example:7070", ""] {
            assert_eq!(status(&guard, Method::GET, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&guard, Method::GET, &[]), 403);
    }

    #[test]
    fn o09_with_a_token_it_has_to_be_shown() {
        let guard = Guard { token: Some("sesame".to_owned()) };
        let with = |value| status(&guard, Method::GET, &[("authorization", value)]);
        assert_eq!(with("Bearer sesame"), 200);
        for wrong in ["Bearer sesam", "Bearer sesamE", "Bearer ", "sesame", "Basic sesame"] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status(&guard, Method::GET, &[("host", "127.0.0.1")]), 401);
        assert!(guard.admit(&Method::GET, &HeaderMap::new(), "/healthz", true).is_ok());
    }

    #[test]
    fn a_scheme_in_lower_case_is_no_wrong_token() {
        let guard = Guard { token: Some("sesame".to_owned()) };
        let with = |value| status(&guard, Method::GET, &[("authorization", value)]);
        for right in ["bearer sesame", "BEARER sesame", "bEaReR  sesame"] {
            assert_eq!(with(right), 200, "{right}");
        }
        for wrong in ["bearer SESAME", "bearersesame", "bearer", "bearer\tsesame", "digest sesame"]
        {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
    }

    #[test]
    fn o09_a_page_of_another_origin_changes_nothing() {
        let guard = Guard { token: None };
        let host = ("host", "127.0.0.1:7070");
        let with = |method, origin| status(&guard, method, &[host, ("origin", origin)]);
        assert_eq!(with(Method::POST, "http://127.0.0.1:7070"), 200);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:8080", ""] {
            assert_eq!(with(Method::POST, origin), 403, "{origin}");
        }
        assert_eq!(status(&guard, Method::POST, &[host]), 200, "a program");
    }
}
