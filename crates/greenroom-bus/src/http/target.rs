//! Where events are posted.

use reqwest::{Client, Url, header::HeaderMap};

/// A URL that was understood, with the text by which logs and errors call it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// The URL without credentials, query and fragment, any of which may be secret.
    pub(crate) shown: String,
}

impl Target {
    /// # Errors
    /// A sentence for the operator if this is no URL to post to. It does not repeat the URL, which
    /// may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let url = read(url).map_err(|why| format!("http: `url` {why}"))?;
        Ok(Self { shown: shown(&url), url })
    }

    /// Takes user and password out of the URL and returns them as a header; no header if there are
    /// none.
    ///
    /// # Errors
    /// A sentence for the operator if the client cannot make a request from the URL.
    pub(super) fn take_credentials(&mut self, client: &Client) -> Result<HeaderMap, String> {
        let mut request = client.post(self.url.clone()).build().map_err(|error| {
            format!("http: no request can be made to {}: {}", self.shown, error.without_url())
        })?;
        self.url = request.url().clone();
        Ok(std::mem::take(request.headers_mut()))
    }
}

/// The causes of an error: its outer layers say only that a request failed, which is known.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// Why a URL is none to post events to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTarget {
    /// It is not written as a URL.
    #[error("cannot be read: {0}; give one such as http://localhost:9000/events")]
    Unreadable(String),
    /// It is one of another kind.
    #[error("has the scheme {0:?}; use http or https, such as http://localhost:9000/events")]
    Scheme(String),
    /// It has no host.
    #[error("has no host; write it after two slashes, such as http://localhost:9000/events")]
    Host,
}

/// Whether events can be posted to this URL.
///
/// ```
/// use greenroom_bus::http::{NoTarget, check_url};
///
/// assert_eq!(check_url("https://localhost:9000/events"), Ok(()));
/// assert_eq!(check_url("http:///events"), Err(NoTarget::Host));
/// ```
///
/// # Errors
/// The problem with it. Does not repeat the URL, which may hold a password.
pub fn check_url(url: &str) -> Result<(), NoTarget> {
    read(url).map(drop)
}

/// Browsers look for a host further to the right if there is none after the two slashes, and so
/// does the parser: `http:///events` would be posted to a host named `events`.
fn read(text: &str) -> Result<Url, NoTarget> {
    let url = Url::parse(text).map_err(|error| NoTarget::Unreadable(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NoTarget::Scheme(url.scheme().to_owned()));
    }
    let after = text.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    let names_a_host = after.is_some_and(|rest| !rest.starts_with(['/', '\\']));
    if names_a_host && url.has_host() { Ok(url) } else { Err(NoTarget::Host) }
}

fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u01_target_is_shown_without_its_secrets() {
        let target = Target::parse("https://me:secret@host:8443/path?token=secret#part").unwrap();
        assert_eq!(target.shown, "https://host:8443/path");
    }

    #[test]
    fn u01_target_must_be_a_url_to_post_to() {
        assert!(Target::parse("localhost:9000").unwrap_err().contains("use http or https"));
        assert!(Target::parse("/events").unwrap_err().contains("cannot be read"));
        let why = Target::parse("http:///secret").unwrap_err();
        assert!(why.contains("`url` has no host") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn a_url_without_a_host_is_not_posted_to_a_host_of_the_name_of_its_path() {
        let hostless = [
            "http:///x",
            "http:x",
            "http:/x",
            "https:///x/y",
            "http:////x",
            "http:/\\x",
            "http://\\x",
        ];
        for url in hostless {
            assert_eq!(check_url(url), Err(NoTarget::Host), "{url}");
        }
        for url in ["http://", "http://:80/", "http://?x", "http://me@/x", "x"] {
            assert!(matches!(check_url(url), Err(NoTarget::Unreadable(_))), "{url}");
        }
        for url in ["http://x", "HTTP://X:80/y", "http://[::1]:80/", "https://me:you@x/?y#z"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
    }
}
