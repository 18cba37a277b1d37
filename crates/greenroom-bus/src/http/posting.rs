//! The settings of a target in a configuration: checked, and in the form for the client.

use std::time::Duration;

use greenroom_config::{At, near};
use reqwest::Url;

use super::{
    Auth, BadHeader, HttpTls, NoRow, NoTarget, NoVerdict, On, StatusMap, TargetConfig, Tls,
    Verdict, check_auth, check_header, check_url,
};

/// The URL to post to, the credentials to use, and the consequences of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Posting<'a> {
    /// `url`. `None`: each event names its own.
    pub url: Option<&'a str>,
    /// `headers`.
    pub headers: &'a [(String, String)],
    /// `auth`.
    pub auth: Option<&'a Auth>,
    /// `tls`.
    pub tls: Option<&'a HttpTls>,
    /// `status`: the rows that differ from the usual.
    pub status: &'a [(String, String)],
}

impl Posting<'_> {
    /// Reports settings that cannot be used, the URL apart. No text here repeats a value: any may
    /// be secret.
    pub fn check(&self, at: &mut At<'_>) {
        check_headers(at, self.headers);
        if let Some(auth) = self.auth {
            self.check_credentials(at, auth);
        }
        check_scheme(at, self.tls, self.url.unwrap_or_default());
        self.check_status(at);
    }

    fn check_credentials(&self, at: &mut At<'_>, auth: &Auth) {
        if let Err(why) = check_auth(auth) {
            let help = "write it as the target has given it; `file:PATH` reads a file without its last line end";
            at.error("auth", why.to_string(), help);
        }
        let mut names = self.headers.iter().map(|(name, _)| name);
        let in_header = names.any(|name| name.eq_ignore_ascii_case("authorization"));
        let in_url = Url::parse(self.url.unwrap_or_default())
            .is_ok_and(|url| !url.username().is_empty() || url.password().is_some());
        if in_header || in_url {
            let other = if in_url { "credentials in the URL" } else { "a header `authorization`" };
            at.error("auth", format!("there is `auth` and {other}"), "leave one of the two out");
        }
    }

    fn check_status(&self, at: &mut At<'_>) {
        let usual = || "for example `404: retry`, `5xx: park` or `timeout: reject`".to_owned();
        let mut map = Vec::new();
        for (on, verdict) in self.status {
            let option = format!("status.{on}");
            let (found, because) = (on.parse::<On>(), verdict.parse::<Verdict>());
            if let Err(why) = &found {
                let near = near::suggestion(on, ["timeout", "connection"]);
                at.error(&option, why.to_string(), near.unwrap_or_else(usual));
            }
            if let Err(why) = &because {
                let near = near::suggestion(verdict, Verdict::ALL.map(Verdict::as_str));
                at.error(&option, why.to_string(), near.unwrap_or_else(usual));
            }
            let (Ok(found), Ok(because)) = (found, because) else { continue };
            map.push((found, because));
            if let Err(why) = StatusMap::with(map.iter().copied()) {
                map.pop();
                let help = "`greenroom explain-status` prints the usual rows";
                at.error(&option, why.to_string(), help);
            }
        }
    }

    /// The target, with the contents of the files of `tls`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn target(&self, timeout: Duration) -> Result<TargetConfig, String> {
        let tls = self.tls.map(HttpTls::read).transpose();
        Ok(TargetConfig {
            url: self.url.unwrap_or_default().to_owned(),
            headers: self.headers.to_vec(),
            auth: self.auth.cloned(),
            tls: tls.map_err(|unread| unread.to_string())?.unwrap_or_else(Tls::default),
            timeout,
            ..TargetConfig::default()
        })
    }

    /// The consequence of each answer.
    ///
    /// # Errors
    /// Its rows are invalid; a checked configuration has no such rows.
    pub fn status_map(&self) -> Result<StatusMap, String> {
        status_map(self.status)
    }
}

/// The consequence of each answer, by the rows of an option `status`.
///
/// # Errors
/// The rows are invalid; a checked configuration has no such rows.
pub fn status_map(rows: &[(String, String)]) -> Result<StatusMap, String> {
    let rows = rows.iter().map(|(on, verdict)| {
        let on: On = on.parse().map_err(|error: NoRow| error.to_string())?;
        let verdict: Verdict = verdict.parse().map_err(|error: NoVerdict| error.to_string())?;
        Ok((on, verdict))
    });
    let rows = rows.collect::<Result<Vec<_>, String>>()?;
    StatusMap::with(rows).map_err(|error| error.to_string())
}

/// Reports a URL in this option that nothing can be posted to.
pub fn check_target(at: &mut At<'_>, option: &str, url: &str) {
    let help = "for example `http://localhost:9000/path`";
    match check_url(url) {
        Ok(()) => {}
        Err(NoTarget::Unreadable(why)) => {
            at.error(option, format!("this is not a URL: {why}"), help);
        }
        Err(NoTarget::Host) => {
            let help = format!("write the host after two slashes, {help}");
            at.error(option, "this URL has no host", help);
        }
        Err(_) => at.error(option, "this is not an http or https URL", help),
    }
}

/// Reports headers in the option `headers` that cannot be sent.
pub fn check_headers(at: &mut At<'_>, headers: &[(String, String)]) {
    for (name, value) in headers {
        if let Err(why) = check_header(name, value) {
            let help = match why {
                BadHeader::Reserved(_) => "leave it out",
                BadHeader::Name(_) => "letters, digits and `-`, for example `x-team`",
                _ => "a header is one line of text",
            };
            at.error(&format!("headers.{name}"), why.to_string(), help);
        }
    }
}

/// Reports an option `tls` whose URL has no TLS.
pub fn check_scheme(at: &mut At<'_>, tls: Option<&HttpTls>, url: &str) {
    if tls.is_some() && Url::parse(url).is_ok_and(|url| url.scheme() == "http") {
        let help = "write `https` in the URL, or leave `tls` out";
        at.error("tls", "`tls` is for an https URL", help);
    }
}
