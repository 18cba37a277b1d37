//! Which URLs an event may name, and which addresses they may lead to.
//!
//! An event is not to choose what this machine reaches: `http://169.254.169.254/` answers with the
//! credentials of a cloud machine, and a name may resolve to that address, too. So the URL has to
//! match a pattern, and the address that its name resolves to has to be public, or in a range that
//! is allowed.

use std::{net::IpAddr, str::FromStr};

use reqwest::Url;

use super::address::{AddressRange, is_public, meant};
use crate::pattern::Pattern;

/// The patterns of URLs and the ranges of addresses of an option `allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    urls: Vec<UrlPattern>,
    ranges: Vec<AddressRange>,
}

/// An entry of `allow` that is neither a pattern of URLs nor a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAllow {
    /// It is neither.
    #[error(
        "{0:?} is neither a URL such as `https://*.example.com/**` nor a range such as `10.0.0.0/8`"
    )]
    Neither(String),
    /// It has no path: nobody could say whether `/` is meant, or any.
    #[error("{0:?} has no path; write `/**` after the host for any path")]
    Path(String),
    /// A star beside other characters.
    #[error(
        "in {0:?} a star stands beside other characters; `*` is a whole segment of host or path, `**` any number"
    )]
    Star(String),
    /// Its host is none.
    #[error("the host of {0:?} is none")]
    Host(String),
    /// Its port is none.
    #[error("the port of {0:?} is neither a number nor `*`")]
    Port(String),
}

impl Allow {
    /// Adds an entry: a pattern of URLs, or a range of addresses.
    ///
    /// # Errors
    /// It is neither.
    pub fn push(&mut self, entry: &str) -> Result<(), BadAllow> {
        if entry.contains("://") {
            self.urls.push(entry.parse()?);
        } else {
            let range = entry.parse().map_err(|()| BadAllow::Neither(entry.to_owned()))?;
            self.ranges.push(range);
        }
        Ok(())
    }

    /// Whether any URL is allowed at all.
    pub fn has_urls(&self) -> bool {
        !self.urls.is_empty()
    }

    /// Whether any of the URLs is `https`.
    pub(super) fn has_tls(&self) -> bool {
        self.urls.iter().any(|pattern| pattern.scheme == "https")
    }

    /// Whether an event may name this URL.
    pub(super) fn permits(&self, url: &Url) -> bool {
        self.urls.iter().any(|pattern| pattern.matches(url))
    }

    /// Whether a connection may be made to this address.
    pub(super) fn reaches(&self, address: IpAddr) -> bool {
        let address = meant(address);
        is_public(address) || self.ranges.iter().any(|range| range.contains(address))
    }
}

/// A pattern of URLs: scheme, host, port and path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UrlPattern {
    scheme: &'static str,
    /// Between dots.
    host: Pattern,
    /// `None`: any.
    port: Option<u16>,
    /// Between slashes.
    path: Pattern,
}

impl FromStr for UrlPattern {
    type Err = BadAllow;

    fn from_str(text: &str) -> Result<Self, BadAllow> {
        let why = |bad: fn(String) -> BadAllow| bad(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(|| why(BadAllow::Neither))?;
        let (scheme, usual) = match scheme {
            "https" => ("https", 443),
            "http" => ("http", 80),
            _ => return Err(why(BadAllow::Neither)),
        };
        let (authority, path) = rest.split_once('/').ok_or_else(|| why(BadAllow::Path))?;
        let (host, port) = match authority.rsplit_once(':') {
            // A colon inside of brackets is of an address.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let port = match port {
            None => Some(usual),
            Some("*") => None,
            Some(port) => Some(port.parse().map_err(|_| why(BadAllow::Port))?),
        };
        // As the URLs have it: in small letters, and names of other alphabets in ASCII.
        let read = Url::parse(&format!("http://{host}/")).map_err(|_| why(BadAllow::Host))?;
        let host = read.host_str().filter(|_| read.username().is_empty());
        let host = host.ok_or_else(|| why(BadAllow::Host))?;
        let segments =
            |text, separator| Pattern::split(text, separator).map_err(|_| why(BadAllow::Star));
        Ok(Self { scheme, host: segments(host, '.')?, port, path: segments(path, '/')? })
    }
}

impl UrlPattern {
    fn matches(&self, url: &Url) -> bool {
        let path = url.path();
        url.scheme() == self.scheme
            && (self.port.is_none() || self.port == url.port_or_known_default())
            && url.host_str().is_some_and(|host| self.host.covers(host.split('.')))
            && self.path.covers(path.strip_prefix('/').unwrap_or(path).split('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str]) -> Allow {
        let mut allow = Allow::default();
        entries.iter().for_each(|entry| allow.push(entry).unwrap());
        allow
    }

    #[test]
    fn q12_a_url_has_to_match_scheme_host_port_and_path() {
        let cases = [
            ("https://*.example.com/**", "https://a.example.com/", true),
            ("https://*.example.com/**", "https://A.Example.COM:443/x/y?q#f", true),
            ("https://*.example.com/**", "https://example.com/", false),
            ("https://*.example.com/**", "https://a.b.example.com/", false),
            ("https://**.example.com/**", "https://a.b.example.com/", true),
            ("https://*.example.com/**", "http://a.example.com/", false),
            ("https://*.example.com/**", "https://a.example.com:8443/", false),
            ("https://*.example.com/**", "https://a.example.com./", false),
            ("https://*.example.com/**", "https://evil.com/a.example.com/", false),
            ("https://*.example.com/**", "https://a.example.com@evil.com/", false),
            ("https://*.example.com/**", "https://evil.com#.example.com/", false),
            ("https://example.com:8443/in", "https://example.com:8443/in", true),
            ("https://example.com:*/in", "https://example.com:9/in", true),
            ("https://example.com/in", "https://example.com/in/", false),
            ("https://example.com/", "https://example.com", true),
            ("https://example.com/hooks/*", "https://example.com/hooks/../admin", false),
            ("https://example.com/hooks/*", "https://example.com/hooks/%2e%2E/admin", false),
            ("https://example.com/hooks/*", "https://example.com/hooks/1", true),
            ("http://127.0.0.1:*/**", "http://2130706433:80/", true),
            ("http://[::1]:*/**", "http://[0:0::1]:8080/x", true),
            ("https://bücher.example/**", "https://xn--bcher-kva.example/a", true),
            ("https://**/**", "https://anything.at.all:443/x", true),
        ];
        for (entry, url, fits) in cases {
            let url = Url::parse(url).unwrap();
            assert_eq!(allow(&[entry]).permits(&url), fits, "{entry} on {url}");
        }
    }

    #[test]
    fn q12_an_entry_that_cannot_be_meant_is_refused() {
        let why = |entry: &str| Allow::default().push(entry).unwrap_err();
        for entry in ["example.com", "ftp://a/**", "10.0.0.0/33", "fd00::/129", "", "a.b/8"] {
            assert_eq!(why(entry), BadAllow::Neither(entry.to_owned()));
        }
        assert!(matches!(why("https://example.com"), BadAllow::Path(_)));
        assert!(matches!(why("https://a*.example.com/"), BadAllow::Star(_)));
        assert!(matches!(why("https://a/b*"), BadAllow::Star(_)));
        assert!(matches!(why("https:///b"), BadAllow::Host(_)));
        assert!(matches!(why("https://a@b/"), BadAllow::Host(_)));
        assert!(matches!(why("https://a:b/"), BadAllow::Port(_)));
    }

    #[test]
    fn q12_a_range_that_is_allowed_is_reached_and_no_other() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let allow = allow(&["127.0.0.0/8", "fd00:1::/32", "10.1.2.3"]);
        for open in ["127.9.9.9", "::ffff:127.0.0.1", "fd00:1::9", "10.1.2.3", "8.8.8.8"] {
            assert!(allow.reaches(address(open)), "{open}");
        }
        for refused in ["::1", "10.1.2.4", "fd00:2::9", "169.254.169.254"] {
            assert!(!allow.reaches(address(refused)), "{refused}");
        }
    }
}
