//! The dashboard: a page that gets all its figures from this listener.
//!
//! Its sources are in `dashboard/`; its build is in `assets` next to this file, so that building
//! greenroom needs only Rust. CI proves that it is current.
//!
//! The page itself holds no figures and needs no token. It loads nothing from elsewhere, and a
//! policy stops it from running foreign scripts if a letter is ever rendered as more than text.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

/// A file of the page.
pub(super) struct Asset {
    pub(super) path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $kind:literal, $file:literal) => {
        Asset { path: $path, kind: $kind, bytes: include_bytes!(concat!("page/assets/", $file)) }
    };
}

const ICON: Asset = asset!("/favicon.svg", "image/svg+xml", "favicon.svg");

/// All files of the dashboard.
pub(super) const ASSETS: [Asset; 4] = [
    asset!("/", "text/html; charset=utf-8", "index.html"),
    asset!("/assets/app.js", "text/javascript; charset=utf-8", "app.js"),
    asset!("/assets/app.css", "text/css; charset=utf-8", "app.css"),
    ICON,
];

/// The playground of `greenroom demo`, which is a page of its own.
pub(super) const PLAYGROUND: [Asset; 4] = [
    asset!("/", "text/html; charset=utf-8", "playground.html"),
    asset!("/assets/playground.js", "text/javascript; charset=utf-8", "playground.js"),
    asset!("/assets/playground.css", "text/css; charset=utf-8", "playground.css"),
    ICON,
];

/// The permissions of the page: run and load files from this listener, and query it.
const OF_THE_PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The permissions of any other answer, if a browser is made to show it as a page: none.
const OF_OTHERS: &str = "default-src 'none'; frame-ancestors 'none'";

/// True for public files.
pub(super) fn is_part(path: &str) -> bool {
    ASSETS.iter().any(|asset| asset.path == path)
}

impl Asset {
    /// The file; only 304 if the browser has it already.
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response {
        let tag = self.tag();
        let known = asked.get(header::IF_NONE_MATCH).is_some_and(|known| *known == tag);
        let mut response =
            Response::new(if known { Body::empty() } else { Body::from(self.bytes) });
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        // Another greenroom may have this address tomorrow, so the browser asks each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::ETAG, tag);
        let policy = HeaderValue::from_static(OF_THE_PAGE);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        response
    }

    fn tag(&self) -> HeaderValue {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(self.bytes);
        // Hexadecimal digits in quotes are a value of a header.
        HeaderValue::from_str(&format!("\"{hash:016x}\""))
            .unwrap_or_else(|_| HeaderValue::from_static("\"0\""))
    }
}

/// The headers of every answer to browsers: its type is final, and no frame shows it.
pub(super) fn guarded(mut response: Response) -> Response {
    let all = [
        (header::CONTENT_SECURITY_POLICY, OF_OTHERS),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in all {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o07_the_page_runs_nothing_that_is_not_its_own() {
        for asset in [&ASSETS[0], &PLAYGROUND[0]] {
            let page = guarded(asset.answer(&HeaderMap::new()));
            let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            let strict = policy.starts_with("default-src 'none'") && !policy.contains("unsafe");
            assert!(strict, "{policy}");
            assert_eq!(page.headers()[header::X_FRAME_OPTIONS], "DENY");
            let html = String::from_utf8_lossy(asset.bytes);
            assert!(!html.contains("http://") && !html.contains("https://"), "{html}");
            assert!(!html.contains("style=") && !html.contains("<style"), "{html}");
        }
        let others = guarded(Response::new(Body::empty()));
        assert_eq!(others.headers()[header::CONTENT_SECURITY_POLICY], OF_OTHERS);
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        let first = ASSETS[1].answer(&HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let asked = HeaderMap::from_iter([(header::IF_NONE_MATCH, ASSETS[1].tag())]);
        assert_eq!(ASSETS[1].answer(&asked).status(), StatusCode::NOT_MODIFIED);
        assert_ne!(ASSETS[1].tag(), ASSETS[2].tag());
    }
}
