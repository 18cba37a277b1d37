//! The options of a URL as a handler.

use std::{path::PathBuf, time::Duration};

use greenroom_config::{
    At, Secret, defaults_beside, duration, flag, group, options, path, size, text, texts,
    units::{DAY_MS, GIB},
    url, variables, word,
};

use crate::{
    event::{OrderBy, OrderByError},
    http::{Allow, Auth, EventUrl, HttpTls, Posting, TargetConfig, check_target, message::Mode},
};

options! {
    /// 2xx settles; 408, 425, 429, 5xx, a timeout or a refused connection is tried again; 401 and
    /// 403 pause the handler; any other answer makes a dead letter. A reload changes all these
    /// options.
    pub struct HttpOptions = "http", then HttpOptions::checked {
        /// The URL to post to, or where each event has its own.
        url: PostTo = group();
        /// Headers to add to each request. `ce-*`, `content-type` and others that greenroom writes
        /// cannot be set.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// The credentials to send. Without it, only those in the URL and the headers.
        auth: Option<Auth> = group().optional();
        /// The authorities to trust, and the client certificate. Without it, the authorities of the
        /// system, and no certificate.
        tls: Option<HttpTls> = group().optional();
        /// Signs each request as Standard Webhooks specifies, with the secrets of its share.
        signature: Option<WebhookSignature> = group().optional();
        /// How long one attempt may take.
        timeout: Duration = duration(1..=DAY_MS).default("5s");
        /// The longest answer with events; a longer one makes a dead letter. An answer without
        /// events may have any length.
        max_response: u64 = size(1024..=GIB).default("16MiB");
        /// `binary` sends the data as the body and the attributes as `ce-` headers;
        /// `structured` sends the event as JSON.
        mode: Mode = word().default("binary");
        /// With `true`, an accepted event goes to the outputs if the answer contains no events.
        pass: bool = flag().default("false");
        /// Changes to the meaning of answers: a status (`404`), a class (`5xx`), a range
        /// (`520..529`), `timeout` or `connection`, each with `settle`, `retry`, `hold`, `pause`,
        /// `pause_share`, `reject` or `park`. The narrowest match applies. `greenroom
        /// explain-status` prints the result.
        status: Vec<(String, String)> = variables().default("{}");
    }
}

options! {
    /// Adds `webhook-id`, `webhook-timestamp` and `webhook-signature`, by which the target can
    /// verify the sender.
    pub struct WebhookSignature = "signature" {
        /// A JSON file with one secret for each share, or two during a rotation: `{"acme":
        /// "whsec_..", "bolt": ["whsec_..", "whsec_.."]}`. It is read again when it has changed. A
        /// share is a value of `share_by`.
        secrets: PathBuf = path();
    }
}

options! {
    /// One URL for all events, which may replace the mapping, or `from` with `allow`.
    pub struct PostTo = "`url`", short "to", then PostTo::checked {
        /// The URL of all events.
        to: Option<Secret<String>> = url().secret().optional();
        /// Where an event has its URL: an attribute, an extension, or a JSON pointer into the data,
        /// as for `order_by`. An event without a URL, or with one that is not allowed, becomes a
        /// dead letter.
        from: Option<String> = text().optional();
        /// The URLs that events may name: `https://*.example.com/**`. `*` is one segment of the
        /// host or path, `**` any number of them. Write an unusual port, or `*` for any. Addresses
        /// that are not public, such as 127.0.0.1 or 10.0.0.1, are refused, even if a name resolves
        /// to them, unless their range is listed too: `10.0.0.0/8`.
        allow: Option<Vec<String>> = texts().optional();
    }
}

impl PostTo {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let help = "write `url: URL`, or `url: { from: /endpoint/url, allow: [\"https://*.example.com/**\"] }`";
        match (&self.to, &self.from) {
            (Some(_), None) if self.allow.is_some() => {
                let text = "`allow` is for URLs that come with the events";
                at.error("allow", text, "leave it out, or write `from` in place of `to`");
            }
            (Some(to), None) => check_target(at, "to", to),
            (None, Some(from)) => self.check_events(from, at),
            // Of one that was written, that it is wrong is known already.
            (None, None) if at.has("to") || at.has("from") => {}
            (None, None) => at.error("", "there is no URL", help),
            (Some(_), Some(_)) => at.error("from", "there are both `to` and `from`", help),
        }
        Some(self)
    }

    fn check_events(&self, from: &str, at: &mut At<'_>) {
        if let Err(why) = field(from) {
            at.error("from", why, "for example `/endpoint/url`");
        }
        let mut allow = Allow::default();
        for (place, entry) in self.allow.iter().flatten().enumerate() {
            if let Err(why) = allow.push(entry) {
                let help = "for example `https://*.example.com/**`, or `10.0.0.0/8`";
                at.error(&format!("allow.{place}"), why.to_string(), help);
                return;
            }
        }
        if !allow.has_urls() {
            let text = "events may not name any URL: `allow` says which";
            let help =
                "for example `allow: [\"https://*.example.com/**\"]`; `https://**/**` is any";
            at.error("allow", text, help);
        }
    }

    /// Where events have it, checked before.
    pub(super) fn event_url(&self) -> Result<Option<EventUrl>, String> {
        let Some(from) = &self.from else { return Ok(None) };
        let mut allow = Allow::default();
        for entry in self.allow.iter().flatten() {
            allow.push(entry).map_err(|why| why.to_string())?;
        }
        Ok(Some(EventUrl { from: field(from)?, allow }))
    }
}

fn field(text: &str) -> Result<OrderBy, String> {
    let field: OrderBy = text.parse().map_err(|why: OrderByError| why.to_string())?;
    if field.is_order() { Ok(field) } else { Err(format!("`{text}` is not a field of an event")) }
}

impl HttpOptions {
    /// To this URL, with the defaults of a configuration.
    pub fn new(url: impl Into<String>) -> Self {
        Self::with_url(PostTo { to: Some(Secret(url.into())), from: None, allow: None })
    }

    /// To where `url` says.
    pub fn with_url(url: PostTo) -> Self {
        Self { url, ..defaults_beside(&[("url", "http://host/")]) }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.posting().check(at);
        Some(self)
    }

    pub(super) fn posting(&self) -> Posting<'_> {
        Posting {
            url: self.url.to.as_deref().map(String::as_str),
            headers: &self.headers,
            auth: self.auth.as_ref(),
            tls: self.tls.as_ref(),
            status: &self.status,
        }
    }

    /// With what its files hold.
    pub(super) fn target(&self) -> Result<TargetConfig, String> {
        self.posting().target(self.timeout)
    }
}
