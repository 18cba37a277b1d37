//! `greenroom dead-letters`: finds, edits, replays, drops, exports (C04) and redrives them.

mod editor;
mod place;
mod redrive;
mod table;

use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
};

use greenroom_bus::store::letters::{By, JobChange, pretty_json};
use greenroom_config::{Word, plural};
use serde_json::Value;

use self::place::Place;
use super::agreed::agreed;
use crate::{
    cli::{
        DeadLettersArgs, DeadLettersCommand, DropArgs, EditArgs, ExportArgs, LettersBy,
        LettersFilter, ListArgs, ReplayArgs, ShowArgs,
    },
    exit::{self, Exit},
    letters::escaped::{Escaped, escaped},
};

/// Carries out the command on the selected letters.
pub fn dead_letters(arguments: &DeadLettersArgs) -> ExitCode {
    let done = match &arguments.what {
        DeadLettersCommand::List(list) => self::list(list),
        DeadLettersCommand::Show(show) => self::show(show),
        DeadLettersCommand::Edit(edit) => self::edit(edit),
        DeadLettersCommand::Replay(replay) => self::replay(replay),
        DeadLettersCommand::Drop(drop) => self::drop_letters(drop),
        DeadLettersCommand::Export(export) => self::export(export),
        DeadLettersCommand::Redrive(redrive) => return redrive::redrive(redrive),
    };
    match done {
        Ok(text) => exit::answer(&text),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn json(value: &Value, on_one_line: bool) -> String {
    escaped(&if on_one_line { format!("{value}\n") } else { format!("{value:#}\n") })
}

fn list(arguments: &ListArgs) -> Result<String, String> {
    let place = Place::find(&arguments.place)?;
    let by = arguments.by.map(|by| match by {
        LettersBy::Group => By::Group,
        LettersBy::Reason => By::Reason,
        LettersBy::Handler => By::Handler,
    });
    let found = match by {
        Some(by) => place.groups(&arguments.filter, by)?,
        None => place.page(&arguments.filter, arguments.after, arguments.limit as usize)?,
    };
    Ok(match (arguments.json, by) {
        (true, _) => json(&found, true),
        (false, Some(by)) => table::groups(&found, by.word()),
        (false, None) => table::letters(&found),
    })
}

fn show(arguments: &ShowArgs) -> Result<String, String> {
    let place = Place::find(&arguments.place)?;
    let letter = place.letter(arguments.number, arguments.unmasked)?;
    // Not as a value: numbers would be rounded.
    let text = match arguments.json {
        true => letter.trim_end().to_owned(),
        false => pretty_json(&letter).map_err(|error| format!("the letter is damaged: {error}"))?,
    };
    Ok(escaped(&format!("{text}\n")))
}

fn export(arguments: &ExportArgs) -> Result<String, String> {
    let place = Place::find(&arguments.place)?;
    let mut out = Escaped::new(io::BufWriter::new(io::stdout().lock()));
    match place.export(&arguments.filter, arguments.unmasked, &mut out) {
        Ok(()) => Ok(String::new()),
        // The reader has closed the pipe.
        Err(why) if why.contains("Broken pipe") => Ok(String::new()),
        Err(why) => Err(why),
    }
}

fn edit(arguments: &EditArgs) -> Result<String, String> {
    let (place, number) = (Place::find(&arguments.place)?, arguments.number);
    if !arguments.settings.is_empty() {
        place.set(number, &arguments.settings)?;
    } else {
        let event = match &arguments.file {
            Some(file) => read(file)?,
            None => match editor::edited(&place.content(number)?)? {
                Some(event) => event,
                None => {
                    return Ok(format!(
                        "nothing was changed: the letter {number} stays the same\n"
                    ));
                }
            },
        };
        place.replace(number, &event)?;
    }
    Ok(format!(
        "the letter {number} has a new event; the first one stays as `original`\n\
         next: greenroom dead-letters replay {} --id {number}\n",
        place.named()
    ))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut event = Vec::new();
    let read = match file == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut event).map(|_| event),
        false => std::fs::read(file),
    };
    read.map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// A change needs an explicit selection.
fn named(filter: &LettersFilter, all: bool) -> Result<(), String> {
    let LettersFilter { ids, pool, handler, input, key, share, event, reason, group, since } =
        filter;
    let texts = [pool, handler, input, key, share, event, reason, group, since];
    if ids.is_empty() && texts.iter().all(|text| text.is_none()) && !all {
        let why =
            "no letters are selected: use `--id`, `--handler`, `--group` and the like, or `--all`";
        return Err(why.to_owned());
    }
    Ok(())
}

fn replay(arguments: &ReplayArgs) -> Result<String, String> {
    let place = Place::find(&arguments.place)?;
    let ordered = [
        (arguments.stop, JobChange::Stop),
        (arguments.resume, JobChange::Resume),
        (arguments.cancel, JobChange::Cancel),
    ];
    if let Some((id, change)) = ordered.iter().find_map(|(id, change)| Some(((*id)?, *change))) {
        let job = place.order(id, change)?;
        return Ok(if arguments.json { json(&job, true) } else { table::job(&job) });
    }
    if arguments.status {
        let jobs = place.replays()?;
        return Ok(if arguments.json { json(&jobs, true) } else { table::jobs(&jobs) });
    }
    named(&arguments.filter, arguments.all)?;
    let marked = place.replay(&arguments.filter, arguments.rate)?;
    Ok(match arguments.json {
        true => json(&marked, true),
        false => table::marked(&marked, &place),
    })
}

fn drop_letters(arguments: &DropArgs) -> Result<String, String> {
    let place = Place::find(&arguments.place)?;
    named(&arguments.filter, arguments.all)?;
    let totals = place.totals(&arguments.filter).or_else(|why| match place.makes_room() {
        true => place.totals(&arguments.filter),
        false => Err(why),
    })?;
    let count = totals["letters"].as_u64().unwrap_or_default();
    let newest = totals["newest"].as_u64().unwrap_or_default();
    if count == 0 {
        return Ok("there is no such letter: nothing was dropped\n".to_owned());
    }
    let letters = plural(count as usize, "letter");
    let question = format!("drop {letters} for good?");
    let otherwise = format!("{letters} would be dropped for good: add `--yes` to confirm");
    if !arguments.yes && !agreed(&question, &otherwise)? {
        return Ok("nothing was dropped\n".to_owned());
    }
    let dropped = place.drop_letters(&arguments.filter, count, newest)?;
    Ok(match arguments.json {
        true => json(&dropped, true),
        false => table::dropped(&dropped),
    })
}
