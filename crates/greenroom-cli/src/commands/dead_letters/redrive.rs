//! `greenroom dead-letters redrive`: letters of a topic or a subject, back to where they came from.

use std::{io::Write, process::ExitCode};

use greenroom_bus::dead_letter::redrive::Redriven;
use serde_json::json;

use crate::{
    cli::RedriveArgs,
    config::{self, Config, LettersTo, plural},
    exit::{self, Exit},
    letters::escaped::Escaped,
};

/// Sends back what is chosen, and says what became of it.
pub(super) fn redrive(arguments: &RedriveArgs) -> ExitCode {
    let source = &arguments.source;
    let (config, problems) = config::load_as_written(&source.file, &source.settings);
    let Some(config) = config else {
        return Exit::BadConfiguration.because(problems.render(false));
    };
    let redriven = match config.dead_letters.to() {
        LettersTo::Kafka(letters) => kafka::redrive(arguments, &config, letters),
        LettersTo::Nats(letters) => nats::redrive(arguments, &config, letters),
        LettersTo::File(_) | LettersTo::Store(_) => Err(format!(
            "the dead letters of {} go to no broker; those of a store are replayed: `greenroom \
             dead-letters replay`",
            source.file.display()
        )),
    };
    match redriven {
        Ok(redriven) => conclude(&redriven, arguments),
        Err(why) => Exit::CouldNotRun.because(shown(&why)),
    }
}

fn conclude(redriven: &Redriven, arguments: &RedriveArgs) -> ExitCode {
    let text = match arguments.json {
        true => json_text(redriven, arguments.dry_run),
        false => plain_text(redriven, arguments.dry_run),
    };
    let answered = exit::answer(&shown(&text));
    match redriven.left {
        0 => answered,
        _ => Exit::Refused.into(),
    }
}

/// Names and errors come from records: no terminal heeds what is in them.
fn shown(text: &str) -> String {
    let mut out = Vec::new();
    // Writing into a Vec cannot fail.
    let _ = Escaped::new(&mut out).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Says on a terminal how far it is.
#[cfg(any(feature = "kafka", feature = "nats"))]
fn progress(redriven: &Redriven) {
    let mut stderr = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&stderr) {
        // Nobody need see it.
        let Redriven { passed_over, left, .. } = redriven;
        let _ =
            writeln!(stderr, "{} sent, {passed_over} not chosen, {left} stay", redriven.count());
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
        text.push_str(&format!("{} not chosen\n", plural(redriven.passed_over as usize, "letter")));
    }
    if redriven.left > 0 {
        let left = plural(redriven.left as usize, "letter");
        text.push_str(&format!("{left} cannot be sent, and stay where they are:\n"));
        redriven.left_because.iter().for_each(|why| text.push_str(&format!("  {why}\n")));
        if redriven.left > redriven.left_because.len() as u64 {
            text.push_str("  ...\n");
        }
    }
    if redriven.is_cut_short {
        text.push_str(
            "not all letters were looked at: the broker has no room to remember more of them one \
             by one; redrive without a choice makes room\n",
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

#[cfg(feature = "kafka")]
mod kafka {
    use greenroom_kafka::RedriveOptions;

    use super::{Config, RedriveArgs, Redriven, progress};
    use crate::config::{KafkaInput, KafkaLetters};

    pub(super) fn redrive(
        arguments: &RedriveArgs,
        config: &Config,
        letters: &KafkaLetters,
    ) -> Result<Redriven, String> {
        let mut options = RedriveOptions {
            reason: arguments.reason.clone(),
            handler: arguments.handler.clone(),
            input: arguments.input.clone(),
            limit: arguments.limit,
            counts_only: arguments.dry_run,
            ..letters.redrive()
        };
        if let Some(group) = &arguments.group {
            options.group.clone_from(group);
        }
        for input in &config.inputs {
            if let Some(kafka) = input.kind.downcast_ref::<KafkaInput>() {
                let setup = input.setup(&config.pools)?;
                options.inputs.push((setup.name, kafka.options(setup.records)));
            }
        }
        greenroom_kafka::redrive(&options, progress).map_err(|why| why.to_string())
    }
}

#[cfg(not(feature = "kafka"))]
mod kafka {
    use super::{Config, RedriveArgs, Redriven};
    use crate::config::{KafkaLetters, lacking};

    pub(super) fn redrive(
        _: &RedriveArgs,
        _: &Config,
        _: &KafkaLetters,
    ) -> Result<Redriven, String> {
        Err(lacking("kafka").unwrap_or_default())
    }
}

#[cfg(feature = "nats")]
mod nats {
    use greenroom_nats::RedriveOptions;

    use super::{Config, RedriveArgs, Redriven, progress};
    use crate::config::{NatsInput, NatsLetters};

    pub(super) fn redrive(
        arguments: &RedriveArgs,
        config: &Config,
        letters: &NatsLetters,
    ) -> Result<Redriven, String> {
        if arguments.group.is_some() {
            return Err("`--group` is for letters of Kafka: on NATS, one that was sent is removed"
                .to_owned());
        }
        let mut options = RedriveOptions {
            reason: arguments.reason.clone(),
            handler: arguments.handler.clone(),
            input: arguments.input.clone(),
            limit: arguments.limit,
            counts_only: arguments.dry_run,
            ..RedriveOptions::new(letters.library_subject()?)
        };
        for input in &config.inputs {
            if let Some(nats) = input.kind.downcast_ref::<NatsInput>() {
                options.inputs.push((input.name.clone(), nats.server()));
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
        let server = letters.server();
        let redrive = greenroom_nats::redrive(&server, &options, progress);
        runtime.block_on(redrive).map_err(|why| why.to_string())
    }
}

#[cfg(not(feature = "nats"))]
mod nats {
    use super::{Config, RedriveArgs, Redriven};
    use crate::config::{NatsLetters, lacking};

    pub(super) fn redrive(
        _: &RedriveArgs,
        _: &Config,
        _: &NatsLetters,
    ) -> Result<Redriven, String> {
        Err(lacking("nats").unwrap_or_default())
    }
}
