//! `greenroom why KEY [ADDRESS]`: where a key stands, and why (C13).

use std::process::ExitCode;

use serde_json::Value;
use url::form_urlencoded;

use crate::{
    admin::ask,
    cli::WhyArgs,
    exit::{self, Exit},
};

/// Asks the running greenroom, and prints a line for each handler and input that has events of the key.
pub fn why(arguments: &WhyArgs) -> ExitCode {
    let key: String = form_urlencoded::byte_serialize(arguments.key.as_bytes()).collect();
    match ask::get(&arguments.address, &format!("/api/keys?key={key}")) {
        Ok(found) => exit::answer(&told(&arguments.key, &found)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn told(key: &str, found: &Value) -> String {
    let lines = found["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    match lines {
        [] => format!("nothing of `{key}` waits or is in hand\n"),
        [line] => format!("{}\n", printable(&text(line, "text"))),
        lines => {
            let told = lines.iter().map(|line| {
                let (handler, input) = (text(line, "handler"), text(line, "input"));
                format!("{handler}, from {input}: {}\n", printable(&text(line, "text")))
            });
            told.collect()
        }
    }
}

/// What a target has answered must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c13_several_lines_are_told_apart() {
        let line =
            |handler: &str| json!({ "handler": handler, "input": "i", "text": "1 waiting; x" });
        let one = json!({ "lines": [line("a")] });
        assert_eq!(told("k", &one), "1 waiting; x\n");
        let two = json!({ "lines": [line("a"), line("b")] });
        assert_eq!(told("k", &two), "a, from i: 1 waiting; x\nb, from i: 1 waiting; x\n");
        let none = json!({ "lines": [] });
        assert_eq!(told("k", &none), "nothing of `k` waits or is in hand\n");
    }
}
