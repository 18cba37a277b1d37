//! The options of an output that posts.

use std::time::Duration;

use greenroom::Backoff;
use greenroom_config::{
    At, Secret, count, defaults_beside, duration, durations, group, options, units::DAY_MS, url,
    variables, word, words,
};

use super::Batching;
use crate::http::{Auth, HttpTls, Posting, TargetConfig, Verdict, check_target};

options! {
    /// 2xx stores the event; 408, 425, 429, 5xx, a timeout or a refused connection is tried again
    /// until it is stored, in order; 401 and 403 pause the output; any other answer makes a dead
    /// letter of the handled event. A reload changes all these options. See docs/outputs.md.
    pub struct HttpOutput = "an http output", then HttpOutput::checked {
        /// The URL to post to.
        url: Secret<String> = url().secret();
        /// Headers to add to each request. `ce-*`, `content-type` and others that greenroom writes
        /// cannot be set.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// The credentials to send. Without it, only those in the URL and the headers.
        auth: Option<Auth> = group().optional();
        /// The authorities to trust, and the client certificate. Without it, the authorities of the
        /// system, and no certificate.
        tls: Option<HttpTls> = group().optional();
        /// `binary` sends the data as the body and the attributes as `ce-` headers;
        /// `structured` sends the event as JSON; `batch` sends several as a JSON array.
        mode: HttpOutputMode = word().default("binary");
        /// How many events `mode: batch` sends at once.
        batch: Batching = group().default("{}");
        /// How many requests are under way at once. Results of events with an order (`order_by` of
        /// their handler) always arrive in it; with 1, all events arrive in the order in which they
        /// were handled.
        concurrency: usize = count(1..=1_024).default("8");
        /// How long one attempt may take.
        timeout: Duration = duration(1..=DAY_MS).default("5s");
        /// The first and the longest wait after a failed attempt. A `Retry-After` of the target
        /// overrides it.
        backoff: Backoff = durations().to::<Backoff>().default("200ms..30s");
        /// Changes to the meaning of answers, as for `http` handlers. `settle` means that the event
        /// is stored; `park` is the same as `reject`.
        status: Vec<(String, String)> = variables().default("{}");
    }
}

words! {
    /// How events are written into requests.
    pub enum HttpOutputMode {
        /// Data as the body, attributes as headers.
        Binary = "binary",
        /// The event as JSON.
        Structured = "structured",
        /// Several events as a JSON array.
        Batch = "batch",
    }
}

impl HttpOutput {
    /// To this URL, with the defaults of a configuration.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: Secret(url.into()), ..defaults_beside(&[("url", "http://host/")]) }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if at.has("batch") && self.mode != HttpOutputMode::Batch {
            let text = "`batch` is for `mode: batch` only";
            at.error("batch", text, "write `mode: batch`, or leave `batch` out");
            return None;
        }
        check_target(at, "url", &self.url);
        self.posting().check(at);
        for (on, _) in self.status.iter().filter(|(_, verdict)| verdict == Verdict::Park.as_str()) {
            let text = "an output parks nothing: each becomes a dead letter";
            at.useless(&format!("status.{on}"), text, "write `reject`");
        }
        Some(self)
    }

    /// With what its files hold.
    pub(super) fn target(&self) -> Result<TargetConfig, String> {
        self.posting().target(self.timeout)
    }

    pub(super) fn posting(&self) -> Posting<'_> {
        Posting {
            url: Some(&self.url),
            headers: &self.headers,
            auth: self.auth.as_ref(),
            tls: self.tls.as_ref(),
            status: &self.status,
        }
    }
}
