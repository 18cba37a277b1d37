//! Logs on standard error (C10): for people, or as JSON.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal, Write},
    time::SystemTime,
};

use clap::ValueEnum;
use greenroom_bus::printable::is_hidden;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    fmt::{format::Writer, time::FormatTime},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::progress::AboveBar;

const LEVELS: &str = "off, error, warn, info, debug, trace, or `target=level,...`";

/// The format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people to read
    Human,
    /// One JSON object per line
    Json,
}

/// Starts logging. A level on the command line wins over `RUST_LOG`.
///
/// # Errors
/// The level is invalid; lists the levels.
pub(crate) fn start(format: Option<LogFormat>, level: Option<&str>) -> Result<(), String> {
    let variable = env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let (filter, unread) = filter(level, variable.as_deref())?;
    let json = matches!(format, Some(LogFormat::Json));
    let lines = fmt::layer().with_writer(move || MarkedLog { json });
    let layer = match format {
        Some(LogFormat::Json) => lines.json().boxed(),
        Some(LogFormat::Human) | None => {
            let lines = lines.with_ansi(colour_on_stderr()).with_target(false);
            if io::stderr().is_terminal() {
                lines.with_timer(TimeOfDay).boxed()
            } else {
                lines.boxed()
            }
        }
    };
    #[cfg(feature = "otlp")]
    let layer = layer.and_then(crate::telemetry::logs::LogLines);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    if let Some(text) = unread {
        tracing::warn!(
            "RUST_LOG={text} is neither a level nor `target=level,...`; logging at info"
        );
    }
    Ok(())
}

/// Standard error, for lines without hidden characters: they quote text from elsewhere.
struct MarkedLog {
    json: bool,
}

impl Write for MarkedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        AboveBar.write_all(marked(&String::from_utf8_lossy(line), self.json).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        AboveBar.flush()
    }
}

/// The line with hidden characters escaped, in JSON so that its readers get the same text.
fn marked(line: &str, json: bool) -> Cow<'_, str> {
    if !line.contains(is_hidden) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for character in line.chars() {
        match is_hidden(character) {
            true if json => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            true => shown.extend(character.escape_unicode()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// The time of day in UTC, to the second: on a terminal, the date is known
/// and lines should be short.
struct TimeOfDay;

impl FormatTime for TimeOfDay {
    fn format_time(&self, to: &mut Writer<'_>) -> std::fmt::Result {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        to.write_str(&time_of_day(now.as_secs()))
    }
}

/// `seconds` since 1970 as `17:04:09Z`.
fn time_of_day(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

/// The filter, and the value of `RUST_LOG` if it could not be read.
fn filter(
    level: Option<&str>,
    variable: Option<&str>,
) -> Result<(Targets, Option<String>), String> {
    let default = Targets::new().with_default(LevelFilter::INFO);
    if let Some(level) = level {
        // A bare word would otherwise be taken for a target with all of its lines shown.
        let words = level.split(',').filter(|part| !part.contains('='));
        let known = words.into_iter().all(|word| word.parse::<LevelFilter>().is_ok());
        return match level.parse() {
            Ok(targets) if known => Ok((targets, None)),
            _ => Err(format!("`--log-level {level}` is not a level: {LEVELS}")),
        };
    }
    match variable.map(str::parse) {
        None => Ok((default, None)),
        Some(Ok(targets)) => Ok((targets, None)),
        Some(Err(_)) => Ok((default, variable.map(str::to_owned))),
    }
}

/// Whether standard error gets colours (C17): a terminal does, unless NO_COLOR holds any text
/// (no-color.org) or TERM is `dumb`.
pub(crate) fn colour_on_stderr() -> bool {
    may_colour() && io::stderr().is_terminal()
}

/// The same of standard output.
pub(crate) fn colour_on_stdout() -> bool {
    may_colour() && io::stdout().is_terminal()
}

fn may_colour() -> bool {
    let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let understood = env::var_os("TERM").is_none_or(|term| term != "dumb");
    wanted && understood
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enables(filter: &Targets, level: tracing::Level) -> bool {
        filter.would_enable("greenroom_bus::engine", &level)
    }

    #[test]
    fn c10_the_time_on_a_terminal_is_the_time_of_day() {
        assert_eq!(time_of_day(86_400 * 20_000 + 17 * 3_600 + 4 * 60 + 9), "17:04:09Z");
    }

    #[test]
    fn c10_what_is_hidden_in_a_line_is_marked_and_colours_stay() {
        let line = "\u{1b}[32mINFO\u{1b}[0m key a\u{202e}b\u{200d}\n";
        assert_eq!(marked(line, false), "\u{1b}[32mINFO\u{1b}[0m key a\\u{202e}b\\u{200d}\n");
        let json = marked("{\"key\":\"a\u{202e}b\u{61c}\"}", true);
        assert_eq!(json, r#"{"key":"a\u202eb\u061c"}"#);
        assert!(matches!(marked("größe 漢字\n", true), Cow::Borrowed(_)));
    }

    #[test]
    fn c10_info_is_the_default_and_the_command_line_wins() {
        let (default, _) = filter(None, None).unwrap();
        assert!(
            enables(&default, tracing::Level::INFO) && !enables(&default, tracing::Level::DEBUG)
        );
        let (variable, _) = filter(None, Some("greenroom_bus=debug")).unwrap();
        assert!(enables(&variable, tracing::Level::DEBUG));
        let (flag, _) = filter(Some("error"), Some("debug")).unwrap();
        assert!(!enables(&flag, tracing::Level::WARN));
    }

    #[test]
    fn c10_a_level_that_is_none_is_refused_and_a_strange_variable_is_told() {
        assert!(filter(Some("loud"), None).unwrap_err().contains("off, error, warn"));
        let (_, unread) = filter(None, Some("a[b{c=d}]=loud")).unwrap();
        assert_eq!(unread.as_deref(), Some("a[b{c=d}]=loud"));
    }
}
