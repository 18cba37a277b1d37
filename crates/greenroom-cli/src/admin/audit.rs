//! The audit log: the client and result of every change requested of this greenroom (O09).
//!
//! Each request for a change is one line that begins with `admin action:`, whether it was admitted
//! or not. Its body is not logged, and neither are the values that an edit sets: they are data of
//! events.

use std::net::SocketAddr;

use axum::{
    extract::Request,
    http::{Method, StatusCode, Uri},
};
use url::form_urlencoded;

use super::guard::{Role, is_change};

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// A change that a client asks for.
pub(super) struct Action {
    from: String,
    what: String,
}

/// For filters of the log.
const TARGET: &str = "greenroom::audit";

/// The longest description of an action, in characters: keys may be long.
const LONGEST: usize = 500;

impl Action {
    /// `None` for a request that only reads.
    pub(super) fn from_request(request: &Request) -> Option<Self> {
        let from = request.extensions().get::<Peer>();
        let from = from.map_or_else(|| "nowhere".to_owned(), |Peer(address)| address.to_string());
        is_change(request.method())
            .then(|| Self { from, what: action_text(request.method(), request.uri()) })
    }

    /// Writes the line, once the result is known. Returns the action if it was carried out.
    pub(super) fn tell(self, role: Role, status: StatusCode) -> Option<String> {
        let Self { from, what } = self;
        let (who, status) = (role.name(), status.as_u16());
        match status {
            200..400 => {
                tracing::info!(target: TARGET, who, from, what, status, "admin action: done");
                Some(what)
            }
            _ => {
                tracing::warn!(target: TARGET, who, from, what, status, "admin action: refused");
                None
            }
        }
    }
}

fn action_text(method: &Method, uri: &Uri) -> String {
    let mut what = format!("{method} {}", uri.path());
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    for (number, (name, value)) in query.enumerate() {
        let mark = if number == 0 { '?' } else { '&' };
        what.push(mark);
        what.push_str(&name);
        what.push('=');
        let hidden = name == "set";
        what.push_str(if hidden { value.split('=').next().unwrap_or_default() } else { &value });
        if hidden {
            what.push_str("=(not told)");
        }
    }
    match what.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &what[..end]),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o09_the_audit_log_holds_no_data_of_events() {
        let uri = "/api/dead-letters/3/edit?set=/data/card=4111&set=/data/x=1";
        let told = action_text(&Method::POST, &uri.parse().unwrap());
        assert_eq!(
            told,
            "POST /api/dead-letters/3/edit?set=/data/card=(not told)&set=/data/x=(not told)"
        );
        let uri = format!("/api/keys/drop?key={}", "k".repeat(2_000));
        let told = action_text(&Method::POST, &uri.parse().unwrap());
        assert!(told.chars().count() == LONGEST + 1 && told.ends_with('…'), "{told}");
    }
}
