//! The permissions of clients (O09): without a token, only programs on this machine have access,
//! and never a web page from elsewhere.
//!
//! A browser on this machine can reach the listener on behalf of any page that it shows. Such a
//! page is kept out twice: its origin is not the listener's, so it changes nothing; and a name of
//! its own that it points at this machine (DNS rebinding) is not a name of the listener, so it
//! reads nothing either.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use subtle::ConstantTimeEq;

use super::answer::Refusal;
use crate::config::AdminConfig;

/// The relation of the requesting page to this server (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Decides on requests.
pub(super) struct Guard {
    token: Option<String>,
    /// Only together with `token`.
    read_token: Option<String>,
}

/// The role of a request, with its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Ask whether greenroom is healthy, and get the page, which holds no figures.
    Stranger,
    /// Read everything.
    Reader,
    /// Change things, having shown the token.
    Admin,
    /// Change things from this machine, if no token is required.
    Local,
}

impl Role {
    /// True if it may see everything.
    pub(super) fn sees_all(self) -> bool {
        self != Self::Stranger
    }

    pub(super) fn may_change(self) -> bool {
        matches!(self, Self::Admin | Self::Local)
    }

    /// For the page and the audit log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stranger => "nobody",
            Self::Reader => "read token",
            Self::Admin => "admin token",
            Self::Local => "no token",
        }
    }
}

impl Guard {
    /// Programs and pages on this machine, without a token.
    pub(super) fn local() -> Self {
        Self { token: None, read_token: None }
    }

    pub(super) fn new(config: &AdminConfig) -> Self {
        let (token, read_token) = (config.token.as_deref(), config.read_token.as_deref());
        Self { token: token.cloned(), read_token: read_token.cloned() }
    }

    /// The role of an admitted request, or the reason for the refusal. `open` is for public
    /// requests: the health of greenroom, and the page.
    pub(super) fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        path: &str,
        open: bool,
    ) -> Result<Role, Refusal> {
        let role = match self.role(headers, path) {
            Err(_) if open => Role::Stranger,
            role => role?,
        };
        if is_change(method) {
            may_change(role, path)?;
            same_origin(headers, path)?;
            json_body(headers, path)?;
        }
        Ok(role)
    }

    /// The role of a request that only reads.
    pub(super) fn whose(&self, headers: &HeaderMap) -> Role {
        self.role(headers, "").unwrap_or(Role::Stranger)
    }

    fn role(&self, headers: &HeaderMap, path: &str) -> Result<Role, Refusal> {
        let Some(token) = &self.token else {
            return named_as_this_machine(headers, path).map(|()| Role::Local);
        };
        let shown = text(headers, header::AUTHORIZATION);
        let shown = shown.and_then(bearer).map(str::trim);
        let is = |token: &String| shown.is_some_and(|shown| same(shown, token));
        // Both are always compared, so that the time does not show which one matched.
        let (admin, reader) = (is(token), self.read_token.as_ref().is_some_and(is));
        if admin {
            return Ok(Role::Admin);
        }
        if reader {
            return Ok(Role::Reader);
        }
        let what = if shown.is_some() { "the token is wrong" } else { "a token is needed" };
        let next = "send the `admin.token` of the configuration as `authorization: Bearer TOKEN`; \
                    the commands of greenroom take it from GREENROOM_ADMIN_TOKEN";
        Err(Refusal::new(StatusCode::UNAUTHORIZED, what, path, next))
    }
}

/// The token of credentials with the scheme `Bearer`, in any case (RFC 9110, 11.1).
fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, token) = credentials.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Takes the same time wherever two texts of one length differ.
fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

pub(super) fn is_change(method: &Method) -> bool {
    method != Method::GET && method != Method::HEAD
}

fn may_change(role: Role, path: &str) -> Result<(), Refusal> {
    if role.may_change() {
        return Ok(());
    }
    let what = "this token can read everything, but change nothing";
    let next = "send the `admin.token` of the configuration, not its `read_token`";
    Err(Refusal::new(StatusCode::FORBIDDEN, what, path, next))
}

/// A form of another page, which a browser sends without asking, has a body of another type.
fn json_body(headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
    let length = text(headers, header::CONTENT_LENGTH).unwrap_or("0");
    let has_body = length != "0" || headers.contains_key(header::TRANSFER_ENCODING);
    let written = match headers.get(header::CONTENT_TYPE) {
        None if !has_body => return Ok(()),
        written => written.and_then(|written| written.to_str().ok()).unwrap_or_default(),
    };
    let media = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media.starts_with("application/") && (media.ends_with("/json") || media.ends_with("+json")) {
        return Ok(());
    }
    let what = format!("a body of the type {written:?} is not accepted");
    let next = "send JSON with `content-type: application/json`, or no body if none is needed";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, path, next))
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

/// An address cannot be pointed elsewhere; the only name that is known to mean this machine is
/// `localhost`.
fn named_as_this_machine(headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
    match host(headers) {
        Some(host) if host == "localhost" || host.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the listener does not have this name",
            path,
            "use its address or `localhost`, or set `admin.token`",
        )),
    }
}

/// Programs send no origin; a browser names the page that sends the request.
fn same_origin(headers: &HeaderMap, path: &str) -> Result<(), Refusal> {
    let foreign = text(headers, FETCH_SITE).is_some_and(|site| site.starts_with("cross-site"));
    let own = text(headers, header::HOST);
    let is_own = match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            let origin = origin.to_str().unwrap_or_default();
            // With TLS if a proxy before the listener speaks it.
            let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
            host.is_some() && host == own
        }
    };
    if is_own && !foreign {
        return Ok(());
    }
    let next = "send it from a page of the listener itself, or with a program such as curl";
    let what = "a page of another origin must not change anything";
    Err(Refusal::new(StatusCode::FORBIDDEN, what, path, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn guard(token: Option<&str>, read_token: Option<&str>) -> Guard {
        Guard { token: token.map(str::to_owned), read_token: read_token.map(str::to_owned) }
    }

    fn status(guard: &Guard, method: Method, pairs: &[(&'static str, &'static str)]) -> u16 {
        let admitted = guard.admit(&method, &headers(pairs), "/api/pools", false);
        admitted.map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    #[test]
    fn o09_without_a_token_it_is_asked_by_address_only() {
        let guard = guard(None, None);
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
        let guard = guard(Some("sesame"), None);
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
        let guard = guard(Some("sesame"), None);
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
        let guard = guard(None, None);
        let host = ("host", "127.0.0.1:7070");
        let with = |method, origin| status(&guard, method, &[host, ("origin", origin)]);
        assert_eq!(with(Method::POST, "http://127.0.0.1:7070"), 200);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:8080", ""] {
            assert_eq!(with(Method::POST, origin), 403, "{origin}");
        }
        assert_eq!(status(&guard, Method::POST, &[host]), 200, "a program");
    }

    #[test]
    fn o09_a_proxy_with_tls_before_it_is_no_other_origin() {
        let guard = guard(Some("sesame"), None);
        let with = |origin| {
            let shown = ("authorization", "Bearer sesame");
            let host = ("host", "greenroom.example");
            status(&guard, Method::POST, &[shown, host, ("origin", origin)])
        };
        assert_eq!(with("https://greenroom.example"), 200);
        assert_eq!(with("https://greenroom.example.evil.example"), 403);
        assert_eq!(with("ftp://greenroom.example"), 403);
    }

    #[test]
    fn o09_a_read_token_changes_nothing() {
        let guard = guard(Some("sesame"), Some("look"));
        let with = |method, token| status(&guard, method, &[("authorization", token)]);
        assert_eq!(with(Method::GET, "Bearer look"), 200);
        assert_eq!(with(Method::HEAD, "Bearer look"), 200);
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(with(method.clone(), "Bearer look"), 403, "{method}");
            assert_eq!(with(method, "Bearer sesame"), 200);
        }
        let role = |token| guard.whose(&headers(&[("authorization", token)]));
        assert_eq!(role("Bearer look"), Role::Reader);
        assert_eq!(role("Bearer sesame"), Role::Admin);
        assert_eq!(role("Bearer sesamelook"), Role::Stranger);
        let open = guard.admit(&Method::GET, &HeaderMap::new(), "/", true);
        assert_eq!(open.unwrap(), Role::Stranger);
        assert!(guard.admit(&Method::POST, &HeaderMap::new(), "/healthz", true).is_err());
    }

    #[test]
    fn o09_a_change_takes_json_or_no_body() {
        let guard = guard(None, None);
        let host = ("host", "127.0.0.1:7070");
        let with = |pairs: &[(&'static str, &'static str)]| {
            status(&guard, Method::POST, &[&[host][..], pairs].concat())
        };
        assert_eq!(with(&[]), 200);
        assert_eq!(with(&[("content-length", "0")]), 200);
        for json in ["application/json", "application/cloudevents+json; charset=utf-8"] {
            assert_eq!(with(&[("content-length", "2"), ("content-type", json)]), 200, "{json}");
        }
        assert_eq!(with(&[("content-length", "2")]), 415);
        assert_eq!(with(&[("transfer-encoding", "chunked")]), 415);
        let forms =
            ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "", "json"];
        for form in forms {
            assert_eq!(with(&[("content-type", form)]), 415, "{form}");
        }
    }

    #[test]
    fn o09_a_browser_that_asks_for_another_site_changes_nothing() {
        let guard = guard(None, None);
        let host = ("host", "127.0.0.1:7070");
        let with = |site| status(&guard, Method::POST, &[host, ("sec-fetch-site", site)]);
        assert_eq!(with("cross-site"), 403);
        assert_eq!((with("same-origin"), with("none")), (200, 200));
    }
}
