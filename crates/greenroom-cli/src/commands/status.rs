//! `greenroom status [ADDRESS]`: the health of a running greenroom in one verdict (C22, O14).

use std::{fmt::Write, iter, process::ExitCode};

use serde_json::Value;

use super::advise::what_to_type;
use crate::{
    admin_client,
    cli::StatusArgs,
    exit::{self, Exit},
    letters::escaped::printable,
};

/// Prints whether it is healthy, its problems and their consequences. Exit code 3 if there is one.
pub fn status(arguments: &StatusArgs) -> ExitCode {
    let health = match admin_client::get(&arguments.address, "/healthz") {
        Ok(health) => health,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let is_well = health["health"] == "green";
    let text = match arguments.json {
        true => format!("{health:#}\n"),
        false => health_text(&arguments.address, &health),
    };
    let printed = exit::answer(&text);
    if is_well || printed != ExitCode::SUCCESS { printed } else { Exit::Refused.into() }
}

fn health_text(address: &str, health: &Value) -> String {
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    let mut out = format!("{}: {}\n", text(&health["health"]), text(&health["headline"]));
    let findings = health["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    for finding in findings {
        let (what, figures) = (text(&finding["what"]), text(&finding["figures"]));
        // Writing into a String cannot fail.
        let _ = match finding["follows"].is_null() {
            true => writeln!(out, "\n{:<9} {what}: {figures}", text(&finding["severity"])),
            false => writeln!(out, "       -> {what}: {figures}"),
        };
        let next = what_to_type(address, finding);
        if let Some((_, next)) = next.filter(|_| finding["follows"].is_null()) {
            let lines = finding["lines"].as_str().unwrap_or_default();
            let lines = lines.lines().map(|line| format!("  {}", printable(line)));
            for line in iter::once(text(&finding["change"])).chain(lines).chain([next]) {
                let _ = writeln!(out, "          {line}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c22_o14_causes_come_with_what_follows_from_them_and_what_to_do() {
        let health = json!({
            "health": "red", "headline": "The output `o` is paused",
            "findings": [
                { "severity": "critical", "what": "The output `o` is paused", "figures": "401\u{1b}[2J",
                  "change": "Let it go on.", "command": "greenroom output resume o", "follows": null },
                { "severity": "warning", "what": "Workers wait", "figures": "8 of 8", "change": "-",
                  "ask": "GET /api/run", "follows": "outputs.o" },
                { "severity": "warning", "what": "No progress", "figures": "1 of 4", "change": "Limit them:",
                  "lines": "pools:\n  p:\n    timeout: 60s", "ask": "GET /api/pools/p/workers", "follows": null },
                { "severity": "hint", "what": "Room", "figures": "1", "change": "Less.", "ask": null, "follows": null },
            ],
        });
        let expected = "\
red: The output `o` is paused

critical  The output `o` is paused: 401\\u{1b}[2J
          Let it go on.
          greenroom output resume o h:1
       -> Workers wait: 8 of 8

warning   No progress: 1 of 4
          Limit them:
            pools:
              p:
                timeout: 60s
          curl 'http://h:1/api/pools/p/workers'

hint      Room: 1
";
        assert_eq!(health_text("h:1", &health), expected);
        let well = json!({ "health": "green", "headline": "All is well", "findings": [] });
        assert_eq!(health_text("h:1", &well), "green: All is well\n");
    }
}
