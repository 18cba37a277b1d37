//! `greenroom dead-letters redrive`: letters of a topic or a subject, back to where they came from.

use std::{collections::BTreeMap, io::Write, process::ExitCode};

use serde_json::json;

use crate::{
    cli::RedriveArgs,
    config::{self, Config, LettersTo, plural},
    exit::{self, Exit},
    letters::escaped::Escaped,
};

/// What became of the letters, of whichever broker.
#[derive(Default)]
struct Redriven {
    /// By the topic or stream that they went to.
    sent: BTreeMap<String, u64>,
    passed_over: u64,
    left: u64,
    left_because: Vec<String>,
    is_cut_short: bool,
}

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
        true => redriven.json(arguments.dry_run),
        false => redriven.text(arguments.dry_run),
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
fn progress(sent: u64, passed_over: u64, left: u64) {
    let mut stderr = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&stderr) {
        // Nobody need see it.
        let _ = writeln!(stderr, "{sent} sent, {passed_over} not chosen, {left} stay");
    }
}

impl Redriven {
    fn count(&self) -> u64 {
        self.sent.values().sum()
    }

    fn text(&self, counts_only: bool) -> String {
        let what = if counts_only { "would be sent" } else { "sent" };
        let to = self.sent.iter().map(|(to, count)| format!("{to} ({count})"));
        let to: Vec<_> = to.collect();
        let mut text = match to.is_empty() {
            true => format!("no letter {}\n", if counts_only { what } else { "was sent" }),
            false => {
                format!("{} {what}: {}\n", plural(self.count() as usize, "letter"), to.join(", "))
            }
        };
        if self.passed_over > 0 {
            text.push_str(&format!("{} not chosen\n", plural(self.passed_over as usize, "letter")));
        }
        if self.left > 0 {
            let left = plural(self.left as usize, "letter");
            text.push_str(&format!("{left} cannot be sent, and stay where they are:\n"));
            self.left_because.iter().for_each(|why| text.push_str(&format!("  {why}\n")));
            if self.left > self.left_because.len() as u64 {
                text.push_str("  ...\n");
            }
        }
        if self.is_cut_short {
            text.push_str(
                "not all letters were looked at: the broker has no room to remember more of them one \
                 by one; redrive without a choice makes room\n",
            );
        }
        text
    }

    fn json(&self, counts_only: bool) -> String {
        let object = json!({
            "dry_run": counts_only,
            "sent": self.count(),
            "to": self.sent,
            "not_chosen": self.passed_over,
            "left": self.left,
            "left_because": self.left_because,
            "all_seen": !self.is_cut_short,
        });
        format!("{object}\n")
    }
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
        let tells = |redriven: &greenroom_kafka::Redriven| {
            progress(redriven.count(), redriven.passed_over, redriven.left);
        };
        let redriven = greenroom_kafka::redrive(&options, tells).map_err(|why| why.to_string())?;
        Ok(Redriven {
            sent: redriven.published,
            passed_over: redriven.passed_over,
            left: redriven.left,
            left_because: redriven.left_because,
            is_cut_short: redriven.is_cut_short,
        })
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
        let tells = |redriven: &greenroom_nats::Redriven| {
            progress(redriven.count(), redriven.passed_over, redriven.left);
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
        let server = letters.server();
        let redrive = greenroom_nats::redrive(&server, &options, tells);
        let redriven = runtime.block_on(redrive).map_err(|why| why.to_string())?;
        Ok(Redriven {
            sent: redriven.published,
            passed_over: redriven.passed_over,
            left: redriven.left,
            left_because: redriven.left_because,
            is_cut_short: false,
        })
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
