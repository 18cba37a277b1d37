//! The command that sends a request to the listener, in place of `curl` (C22).

use url::form_urlencoded;

use crate::shell::quoted;

/// As it is typed, without the address: `greenroom pool resume erp`. `None` if there is none.
pub(super) fn command(ask: &str) -> Option<String> {
    let (method, path) = ask.split_once(' ')?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<_> = path.strip_prefix("/api/")?.split('/').collect();
    let command = match (method, &parts[..]) {
        ("POST", ["pools", name, order]) => format!("pool {order} {}", quoted(name)),
        ("POST", ["pools", name, "shares", share, "resume"]) => {
            let share = format!("={share}");
            let (_, share) = form_urlencoded::parse(share.as_bytes()).next()?;
            format!("share resume {} {}", quoted(name), quoted(&share))
        }
        ("POST", ["handlers", name, order]) => format!("handler {order} {}", quoted(name)),
        ("POST", ["outputs", name, "resume"]) => format!("output resume {}", quoted(name)),
        ("POST", ["keys", decision]) => {
            let of: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            let value =
                |name: &str| of.iter().find(|(key, _)| key == name).map(|(_, of)| quoted(of));
            let option =
                |name: &str| value(name).map_or(String::new(), |of| format!(" --{name} {of}"));
            let (handler, event) = (option("handler"), option("event"));
            format!("key {decision} {}{handler}{event}", value("key")?)
        }
        ("GET", ["keys"]) if query.starts_with("key=") => {
            let mut of = form_urlencoded::parse(query.as_bytes());
            format!("why {}", of.next().map(|(_, key)| quoted(&key))?)
        }
        ("GET", ["pools", name, "shares"]) => format!("share list {}", quoted(name)),
        ("POST", ["reload"]) => "reload".to_owned(),
        ("GET", ["dead-letters"]) => "dead-letters list --by group".to_owned(),
        _ => return None,
    };
    Some(format!("greenroom {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c22_what_advice_asks_for_is_a_command() {
        for (ask, expected) in [
            ("POST /api/pools/erp/resume", Some("greenroom pool resume erp")),
            ("POST /api/handlers/my push/resume", Some("greenroom handler resume 'my push'")),
            ("POST /api/outputs/o/resume", Some("greenroom output resume o")),
            (
                "POST /api/keys/resume?key=a+b%27c&handler=push",
                Some(r"greenroom key resume 'a b'\''c' --handler push"),
            ),
            (
                "POST /api/keys/skip?key=a&handler=push&event=e+1",
                Some("greenroom key skip a --handler push --event 'e 1'"),
            ),
            ("GET /api/keys?key=a+b", Some("greenroom why 'a b'")),
            ("GET /api/pools/erp/shares", Some("greenroom share list erp")),
            (
                "POST /api/pools/erp/shares/a%2Fb%20%2B/resume",
                Some("greenroom share resume erp 'a/b +'"),
            ),
            ("POST /api/reload", Some("greenroom reload")),
            ("GET /api/dead-letters", Some("greenroom dead-letters list --by group")),
            ("GET /api/run", None),
        ] {
            assert_eq!(command(ask).as_deref(), expected, "{ask}");
        }
    }
}
