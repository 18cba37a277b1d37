//! The same for a durable log.

use std::{
    fmt::Write as _,
    io::{self, BufWriter, Write},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::store::log::{
    ConsumerStanding, Inspection, LogOptions, LogStanding, SegmentLog, back_up, inspect,
};

use crate::{cli::StoreAction, config::plural};

/// The result in words.
///
/// # Errors
/// The command failed, or the log is damaged.
pub(super) fn act(action: &StoreAction) -> Result<String, String> {
    match action {
        StoreAction::Check { path } => check(path),
        StoreAction::Backup { path, to } => backup(path, to),
        StoreAction::Compact { path, keep, forget } => compact(path, *keep, forget),
        StoreAction::Export { path } => export(path),
    }
}

fn check(path: &Path) -> Result<String, String> {
    let found = inspect(path, |_, _| Ok(())).map_err(|error| error.to_string())?;
    let told = told(path, &found);
    if found.damage.is_empty() { Ok(told) } else { Err(damaged(&found) + "\n" + told.trim_end()) }
}

fn told(path: &Path, found: &Inspection) -> String {
    let mut told = format!(
        "{}: a log of {} in {} ({} bytes)\n",
        path.display(),
        plural(found.events as usize, "event"),
        plural(found.segments, "segment"),
        found.bytes
    );
    // Writing into memory cannot fail.
    if let (Some(oldest), Some(youngest)) = (found.oldest, found.youngest) {
        let (first, last) = (found.first, found.next.saturating_sub(1));
        let (oldest, youngest) = (ago(oldest), ago(youngest));
        let _ = writeln!(told, "events {first} to {last}, written {oldest} to {youngest}");
    }
    let _ = match (found.is_in_use, found.is_torn) {
        (true, _) => writeln!(told, "a greenroom is using it: this is a momentary view"),
        (false, true) => writeln!(
            told,
            "a block at the end is incomplete: a crash left it, none of it was acknowledged, and \
             the next start cuts it off"
        ),
        (false, false) => Ok(()),
    };
    found.consumers.iter().for_each(|consumer| told += &consumer_line(consumer, found.next));
    if found.consumers.is_empty() {
        told += "no consumer has read it yet\n";
    }
    if found.damage.is_empty() {
        told += "every checksum and every sequence number is correct\n";
    }
    told
}

fn consumer_line(consumer: &ConsumerStanding, end: u64) -> String {
    let ConsumerStanding { name, oldest_open, next, done_beyond, .. } = consumer;
    let left = end.saturating_sub(*next);
    format!(
        "consumer {name}: done before event {oldest_open}, {done_beyond} done beyond it, {left} not taken yet\n"
    )
}

/// A time of the past for people, in its largest unit.
fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).unwrap_or_default().as_secs();
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago (unix time {since_1970})", plural(count as usize, unit))
}

fn damaged(found: &Inspection) -> String {
    let lines: Vec<_> = found.damage.iter().map(ToString::to_string).collect();
    format!(
        "{}\nthe log cannot be opened, or not read beyond that; restore a backup, or save what is readable with `greenroom \
         store export` and start with an empty directory",
        lines.join("\n")
    )
}

fn backup(path: &Path, to: &Path) -> Result<String, String> {
    let next = back_up(path, to).map_err(|error| error.to_string())?;
    let (path, to, last) = (path.display(), to.display(), next - 1);
    Ok(format!("{path}: copied to {to}, up to event {last}\n"))
}

fn compact(path: &Path, keep: Duration, forget: &[String]) -> Result<String, String> {
    if !forget.is_empty() {
        let options = LogOptions { max_bytes: u64::MAX, ..LogOptions::default() };
        let log = SegmentLog::open(path, options).map_err(|error| error.to_string())?;
        for consumer in forget {
            log.remove_consumer(consumer).map_err(|error| error.to_string())?;
        }
        log.close_and_wait();
    }
    let (before, after) = SegmentLog::compact(path, keep).map_err(|error| error.to_string())?;
    Ok(compacted(path, &before, &after))
}

fn compacted(path: &Path, before: &LogStanding, after: &LogStanding) -> String {
    let removed = before.segments.saturating_sub(after.segments);
    let (path, first) = (path.display(), after.first);
    let mut told = format!(
        "{path}: {} removed, {} bytes are left; the log begins with event {first}\n",
        plural(removed, "segment"),
        after.bytes
    );
    if let Some(slowest) = after.consumers.iter().min_by_key(|consumer| consumer.oldest_open) {
        let (name, open) = (&slowest.name, slowest.oldest_open);
        let _ = writeln!(told, "the consumer {name} needs everything from event {open} on");
    } else {
        told += "no consumer has read it yet: nothing can be removed\n";
    }
    told
}

fn export(path: &Path) -> Result<String, String> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    let found = inspect(path, |_, event| {
        line.clear();
        event.write_json(&mut line);
        line.push(b'\n');
        out.write_all(&line)
    });
    let found = found.map_err(|error| error.to_string())?;
    out.flush().map_err(|error| format!("cannot write to standard output: {error}"))?;
    if found.damage.is_empty() { Ok(String::new()) } else { Err(damaged(&found)) }
}
