//! The admin listener.

use std::time::Duration;

use greenroom_config::{
    At, Listen, Secret, duration, flag, group, number, options, text, units::DAY_MS,
};

options! {
    /// The dashboard in a browser, and JSON over HTTP, on its own threads, so that it answers even
    /// while every worker is busy or stuck. A web page of another origin can neither read it nor
    /// change anything. docs/dashboard.md and docs/admin.md describe the pages and requests.
    pub struct AdminConfig = "the admin listener", then AdminConfig::guarded {
        /// An IP address (or `localhost`) and a port. With port 0, a free one is chosen and logged.
        /// An address that other machines can reach needs a `token`.
        listen: Listen = text().to::<Listen>().default("127.0.0.1:7070");
        /// The token that every request except health checks must present: `authorization: Bearer
        /// TOKEN`. Take it from a file or the environment: `file:/run/secrets/greenroom-admin`,
        /// `${ADMIN_TOKEN}`.
        token: Option<Secret<String>> = text().secret().optional();
        /// A second token, accepted in place of `token` for reading only: it shows everything,
        /// including dead letters, and changes nothing.
        read_token: Option<Secret<String>> = text().secret().optional();
        /// Optional parts of `/metrics`.
        metrics: MetricsConfig = group().default("{}");
        /// Dead letters raise a warning if they are at least this share of the events finished
        /// within the last minute, and at least five.
        dead_letter_share: f64 = number(0.0..=1.0).default("0.01");
    }
}

options! {
    /// docs/metrics.md lists the metrics.
    #[derive(Copy, Eq)]
    pub struct MetricsConfig = "metrics" {
        /// With `true`, some counters are split by worker, with the label `actor_id`: about four
        /// more series per worker.
        per_worker: bool = flag().default("false");
        /// A worker that has held one event for this long counts as wedged. Choose more than the
        /// longest `timeout` of an attempt.
        wedged_after: Duration = duration(1..=DAY_MS).default("60s");
    }
}

impl AdminConfig {
    fn guarded(self, at: &mut At<'_>) -> Option<Self> {
        if !self.listen.0.ip().is_loopback() && self.token.is_none() {
            let text = "an admin listener that other machines can reach needs a `token`";
            let help = "add `token: \"file:/run/secrets/greenroom-admin\"`, or listen at 127.0.0.1";
            at.error("listen", text, help);
            return None;
        }
        let (token, read_token) = (self.token.as_deref(), self.read_token.as_deref());
        if read_token.is_some() && (token.is_none() || token == read_token) {
            let (text, help) = match token {
                None => (
                    "a `read_token` needs a `token` beside it",
                    "without one, anyone on this machine may change everything",
                ),
                Some(_) => (
                    "`read_token` is the same as `token`",
                    "it would allow all changes: choose another one",
                ),
            };
            at.error("read_token", text, help);
            return None;
        }
        Some(self)
    }
}
