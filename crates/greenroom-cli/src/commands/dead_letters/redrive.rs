//! `greenroom dead-letters redrive`: returns letters of a topic or a subject to their origin.

use std::{io::Write, process::ExitCode};

use greenroom_bus::dead_letter::redrive::{LetterChoice, Redriven};
use greenroom_config::Chosen;
use serde_json::json;

use crate::{
    cli::RedriveArgs,
    config::{self, Config, Kinds, Letters, LettersTo, lacking, plural},
    exit::{self, Exit},
    letters::escaped::escaped,
};

/// Sends the selected letters back, and prints the result.
pub(super) fn redrive(arguments: &RedriveArgs) -> ExitCode {
    let source = &arguments.source;
    let (config, problems) = config::load_as_written(&source.file, &source.settings);
    let Some(config) = config else {
        return Exit::BadConfiguration.because(problems.render(false));
    };
    let redriven = match config.dead_letters.destination() {
        LettersTo::Broker(broker) => from_broker(broker, arguments, &config),
        LettersTo::File(_) | LettersTo::Store(_) => Err(format!(
            "the dead letters of {} do not go to a broker; those of a store can be replayed: `greenroom \
             dead-letters replay`",
            source.file.display()
        )),
    };
    match redriven {
        Ok(redriven) => conclude(&redriven, arguments),
        Err(why) => Exit::CouldNotRun.because(escaped(&why)),
    }
}

fn from_broker(
    broker: &Chosen<Letters>,
    arguments: &RedriveArgs,
    config: &Config,
) -> Result<Redriven, String> {
    if let Some(why) = lacking(broker.key()) {
        return Err(why);
    }
    let choice = LetterChoice {
        reason: arguments.reason.clone(),
        handler: arguments.handler.clone(),
        input: arguments.input.clone(),
        limit: arguments.limit,
        counts_only: arguments.dry_run,
        group: arguments.group.clone(),
    };
    let inputs = config.inputs.iter();
    let inputs = inputs.map(|input| Ok((&*input.kind, input.setup(&config.pools)?)));
    let inputs: Vec<_> = inputs.collect::<Result<_, String>>()?;
    broker.redrive(choice, &inputs, &mut progress)
}

fn conclude(redriven: &Redriven, arguments: &RedriveArgs) -> ExitCode {
    let text = match arguments.json {
        true => json_text(redriven, arguments.dry_run),
        false => plain_text(redriven, arguments.dry_run),
    };
    let answered = exit::answer(&escaped(&text));
    match redriven.left {
        0 => answered,
        _ => Exit::Refused.into(),
    }
}

/// Shows the progress on a terminal.
fn progress(redriven: &Redriven) {
    let mut stderr = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&stderr) {
        // It is optional.
        let Redriven { passed_over, left, .. } = redriven;
        let _ =
            writeln!(stderr, "{} sent, {passed_over} not selected, {left} stay", redriven.count());
    }
}

fn plain_text(redriven: &Redriven, counts_only: bool) -> String {
    let what = if counts_only { "would be sent" } else { "sent" };
    let to = redriven.published.iter().map(|(to, count)| format!("{to} ({count})"));
    let to: Vec<_> = to.collect();
    let mut text = match to.is_empty() {
        true => format!("no letter {}\n", if counts_only { what } else { "was sent" }),
        false => {
            format!("{} {what}: {}\n", plural(redriven.count() as usize, "letter"), to.join(", "))
        }
    };
    if redriven.passed_over > 0 {
        text.push_str(&format!(
            "{} not selected\n",
            plural(redriven.passed_over as usize, "letter")
        ));
    }
    if redriven.left > 0 {
        let left = plural(redriven.left as usize, "letter");
        text.push_str(&format!("{left} cannot be sent, and stay:\n"));
        redriven.left_because.iter().for_each(|why| text.push_str(&format!("  {why}\n")));
        if redriven.left > redriven.left_because.len() as u64 {
            text.push_str("  ...\n");
        }
    }
    if redriven.is_cut_short {
        text.push_str(
            "some letters were not examined: the broker has no room to remember more of them one \
             by one; a redrive without a selection makes room\n",
        );
    }
    text
}

fn json_text(redriven: &Redriven, counts_only: bool) -> String {
    let object = json!({
        "dry_run": counts_only,
        "sent": redriven.count(),
        "to": redriven.published,
        "not_chosen": redriven.passed_over,
        "left": redriven.left,
        "left_because": redriven.left_because,
        "all_seen": !redriven.is_cut_short,
    });
    format!("{object}\n")
}
