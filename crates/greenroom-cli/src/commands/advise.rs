//! `greenroom advise [ADDRESS]`: recommended changes to a running greenroom (O13).

use std::{fmt::Write, process::ExitCode};

use serde_json::Value;

use crate::{
    admin_client,
    cli::AdviseArgs,
    exit::{self, Exit},
    letters::escaped::printable,
};

/// Asks the running greenroom, and prints each finding with its figures, its reason, and the lines
/// to write or the request to send.
pub fn advise(arguments: &AdviseArgs) -> ExitCode {
    match admin_client::get(&arguments.address, "/api/advice") {
        Ok(advice) if arguments.json => exit::answer(&format!("{advice:#}\n")),
        Ok(advice) => exit::answer(&told(&arguments.address, &advice)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn told(address: &str, advice: &Value) -> String {
    let findings = advice["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    if findings.is_empty() {
        return format!("{}\n", printable(text(&advice["nothing"])));
    }
    let mut out = String::new();
    for (place, finding) in findings.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        one(&mut out, address, finding);
    }
    out
}

fn one(out: &mut String, address: &str, finding: &Value) {
    let part = |name: &str| printable(text(&finding[name]));
    let severity = part("severity").to_uppercase();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{severity} {}: {}", part("about"), part("what"));
    let _ = writeln!(out, "  figures  {}", part("figures"));
    let _ = writeln!(out, "  why      {}", part("why"));
    let _ = writeln!(out, "  change   {}", part("change"));
    if let Some(lines) = finding["lines"].as_str() {
        lines.lines().for_each(|line| {
            let _ = writeln!(out, "             {}", printable(line));
        });
    }
    if let Some((what, next)) = what_to_type(address, finding) {
        let _ = writeln!(out, "  {what:<7}  {next}");
    }
}

/// The command that a finding names, or the request: with the address, to be copied.
pub(super) fn what_to_type(address: &str, finding: &Value) -> Option<(&'static str, String)> {
    let command = finding["command"].as_str();
    let command = command.map(|of| ("command", format!("{}{}", printable(of), elsewhere(address))));
    let ask = || finding["ask"].as_str().map(|of| ("ask", curl(address, &printable(of))));
    command.or_else(ask)
}

/// The address, if a command has to name it.
pub(super) fn elsewhere(address: &str) -> String {
    if address == admin_client::ADDRESS { String::new() } else { format!(" {address}") }
}

/// The `curl` command for a request that no command of greenroom makes.
fn curl(address: &str, ask: &str) -> String {
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let (method, path) = ask.split_once(' ').unwrap_or(("GET", ask));
    let method = if method == "GET" { String::new() } else { format!("-X {method} ") };
    let token = match admin_client::has_token() {
        true => "-H \"Authorization: Bearer $GREENROOM_ADMIN_TOKEN\" ",
        false => "",
    };
    format!("curl {method}{token}'http://{address}{path}'")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn o13_each_finding_is_told_with_figures_reason_and_what_to_write() {
        let sizes = json!({
            "severity": "warning", "about": "pools.erp", "what": "Bursts do not fit", "figures": "60 times",
            "why": "they wait", "change": "Let more wait.", "lines": "pools:\n  erp:\n    queue: 2000",
            "ask": null,
        });
        let key = json!({
            "severity": "critical", "about": "handlers.h", "what": "A key waits", "figures": "\u{1b}[2J a\u{202e}b",
            "why": "w", "change": "c", "lines": null, "ask": "POST /api/keys/resume?key=k",
            "command": "greenroom key resume k",
        });
        let text = told("http://h:1/", &json!({ "findings": [sizes, key], "nothing": null }));
        let expected = "\
WARNING pools.erp: Bursts do not fit
  figures  60 times
  why      they wait
  change   Let more wait.
             pools:
               erp:
                 queue: 2000

CRITICAL handlers.h: A key waits
  figures  \\u{1b}[2J a\\u{202e}b
  why      w
  change   c
  command  greenroom key resume k http://h:1/
";
        assert_eq!(text, expected);
        let silent =
            told("h:1", &json!({ "findings": [], "nothing": "Nothing to say: all is well." }));
        assert_eq!(silent, "Nothing to say: all is well.\n");
    }
}
