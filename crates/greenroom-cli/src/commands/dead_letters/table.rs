//! Letters for people to read. Their content is foreign: none of it may control a terminal.

use std::fmt::Write;

use greenroom_config::{plural, units::show_size};
use serde_json::Value;

use super::place::Place;
use crate::letters::escaped::printable;

/// This much of a text is shown in a row, in characters.
const WIDEST: usize = 48;

/// An error is the last column, and may be longer.
const ERROR: usize = 100;

fn text(value: &Value, most: usize) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    };
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Aligned columns; the last one is not padded.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing into a String cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A time in short form: `2026-01-31 12:00:00`.
fn time(value: &Value) -> String {
    text(value, 19).trim_end_matches('…').replace('T', " ")
}

pub(super) fn letters(found: &Value) -> String {
    let letters = found["letters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if letters.is_empty() {
        return format!("no dead letters\n{}", summary(found));
    }
    let rows = letters.iter().map(|letter| {
        vec![
            text(&letter["number"], WIDEST),
            text(&letter["state"], WIDEST),
            time(&letter["last_at"]),
            text(&letter["reason"], WIDEST),
            text(&letter["handler"], WIDEST),
            text(&letter["key"], WIDEST),
            text(&letter["attempts"], WIDEST),
            text(&letter["replays"], WIDEST),
            error(letter),
        ]
    });
    let head =
        ["number", "state", "given up", "reason", "handler", "key", "attempts", "replays", "error"];
    let mut out = table(&head, rows.collect());
    if let (Some(after), None) = (found["after"].as_u64(), found["searched_bytes"].as_u64()) {
        let _ = writeln!(out, "there are more: use --after {after}");
    }
    out + &summary(found)
}

fn error(letter: &Value) -> String {
    match letter["refused"].as_str() {
        Some(_) => format!("not replayed: {}", text(&letter["refused"], ERROR)),
        None => text(&letter["error"], ERROR),
    }
}

pub(super) fn groups(found: &Value, by: &str) -> String {
    let groups = found["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    if groups.is_empty() {
        return format!("no dead letters\n{}", summary(found));
    }
    let rows = groups.iter().map(|group| {
        vec![
            text(&group["name"], WIDEST),
            text(&group["letters"], WIDEST),
            time(&group["first"]),
            time(&group["last"]),
            text(&group["reason"], WIDEST),
            text(&group["handler"], WIDEST),
            text(&group["error"], ERROR),
        ]
    });
    let head = [by, "letters", "first", "last", "reason", "handler", "last error"];
    table(&head, rows.collect()) + &summary(found)
}

fn summary(found: &Value) -> String {
    let mut out = String::new();
    if let Some(bytes) = found["searched_bytes"].as_u64() {
        let _ = write!(out, "the search ended after {bytes} bytes of the file");
        if let Some(after) = found["after"].as_u64() {
            let _ = write!(out, ": use --after {after} to continue");
        }
        out.push('\n');
    }
    let totals = &found["totals"];
    // A page of a file has none.
    if totals.is_null() {
        return out;
    }
    let (letters, bytes) = (count(&totals["letters"]), count(&totals["bytes"]));
    let _ = write!(out, "{}, {}", plural(letters as usize, "letter"), show_size(bytes));
    for (name, what) in [("marked", "marked"), ("in_replay", "in replay")] {
        if count(&totals[name]) > 0 {
            let _ = write!(out, ", {} {what}", count(&totals[name]));
        }
    }
    if count(&totals["removed"]) > 0 {
        let _ = write!(out, "; {} removed by `retention` so far", count(&totals["removed"]));
    }
    out + "\n"
}

pub(super) fn jobs(found: &Value) -> String {
    let jobs = found["replays"].as_array().map(Vec::as_slice).unwrap_or_default();
    if jobs.is_empty() {
        return "no replay was requested\n".to_owned();
    }
    let columns =
        ["id", "state", "letters", "waiting", "in_replay", "settled", "failed", "refused", "rate"];
    let rows = jobs.iter().map(|job| {
        let cells = columns.iter().map(|column| text(&job[*column], WIDEST));
        cells.chain([time(&job["created_at"]), text(&job["wanted"], ERROR)]).collect()
    });
    let head = [
        "replay",
        "state",
        "letters",
        "waiting",
        "in replay",
        "settled",
        "failed again",
        "not replayed",
        "per s",
        "asked for",
        "which",
    ];
    table(&head, rows.collect())
}

pub(super) fn job(job: &Value) -> String {
    format!(
        "replay {} is {}: {} wait, {} in replay, {} settled, {} failed again, {} not replayed\n",
        count(&job["id"]),
        text(&job["state"], WIDEST),
        count(&job["waiting"]),
        count(&job["in_replay"]),
        count(&job["settled"]),
        count(&job["failed"]),
        count(&job["refused"]),
    )
}

pub(super) fn marked(marked: &Value, place: &Place) -> String {
    let (letters, them) = match count(&marked["letters"]) {
        1 => ("1 letter is".to_owned(), "it"),
        letters => (format!("{letters} letters are"), "them"),
    };
    let mut out = match marked["replay"].as_u64() {
        Some(replay) if place.is_running() => format!(
            "replay {replay}: {letters} handled again\n\
             next: greenroom dead-letters replay {} --status\n",
            place.named()
        ),
        Some(replay) => format!(
            "replay {replay}: {letters} marked; the next start of greenroom handles {them}\n"
        ),
        None => "no letter was marked\n".to_owned(),
    };
    if count(&marked["without_event"]) > 0 {
        let _ = writeln!(
            out,
            "{} without an event left out: `edit` can make one from the bytes",
            plural(count(&marked["without_event"]) as usize, "letter")
        );
    }
    if count(&marked["marked_before"]) > 0 {
        let _ = writeln!(out, "{} were marked before", count(&marked["marked_before"]));
    }
    out
}

pub(super) fn dropped(dropped: &Value) -> String {
    let mut out = match count(&dropped["letters"]) {
        1 => "1 letter was dropped\n".to_owned(),
        letters => format!("{letters} letters were dropped\n"),
    };
    if count(&dropped["in_replay"]) > 0 {
        let _ = writeln!(out, "{} are being replayed and stay", count(&dropped["in_replay"]));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c04_one_letter_is_told_as_one() {
        let place = Place::Store("letters".into());
        let one = marked(&json!({ "letters": 1, "replay": 2 }), &place);
        assert_eq!(one, "replay 2: 1 letter is marked; the next start of greenroom handles it\n");
        let three = marked(&json!({ "letters": 3, "replay": 2 }), &place);
        assert!(
            three.ends_with("3 letters are marked; the next start of greenroom handles them\n")
        );
        let totals = json!({ "totals": { "letters": 1, "bytes": 480 } });
        assert_eq!(summary(&totals), "1 letter, 480 bytes\n");
    }
}
