//! `greenroom explain-status [FILE]`: the consequence of each answer of a target (U04).

use std::process::ExitCode;

use greenroom_bus::http::{OUTCOME, Row, StatusMap, Verdict, status_map};

use crate::{
    cli::{ExplainStatusArgs, Source},
    commands::check,
    config::Config,
    exit::{self, Exit},
};

/// Prints the default map, or that of each `http` handler and output of a configuration.
pub fn explain(arguments: &ExplainStatusArgs) -> ExitCode {
    let Some(file) = &arguments.file else {
        return exit::answer(&format!("{}\n{}", table(&StatusMap::default()), notes()));
    };
    let source = Source { file: file.clone(), settings: arguments.settings.clone() };
    match check::load(&source).map(|(config, _)| of_targets(&config)) {
        Ok(Ok(text)) => exit::answer(&text),
        Ok(Err(why)) => Exit::BadConfiguration.because(why),
        Err(exit) => exit.into(),
    }
}

fn of_targets(config: &Config) -> Result<String, String> {
    let handlers = config.handlers.iter();
    let handlers =
        handlers.filter_map(|handler| Some(("handler", &handler.name, handler.kind.status()?)));
    let outputs = config.outputs.iter();
    let outputs =
        outputs.filter_map(|output| Some(("output", &output.name, output.kind.status()?)));
    let mut out = String::new();
    for (what, name, status) in handlers.chain(outputs) {
        let map = status_map(status)?;
        out.push_str(&format!("{what} {name}\n{}\n", table(&map)));
    }
    Ok(match out.is_empty() {
        true => {
            "no handler or output of this configuration is `http`: nothing is posted\n".to_owned()
        }
        false => out + notes().as_str(),
    })
}

fn table(map: &StatusMap) -> String {
    let row = |answer: &str, event: &str, holds: &str, why: &str| {
        format!("{answer:<11} {event:<11} {holds:<8} {why}\n")
    };
    let mut out = row("answer", "event", "holds", "why");
    for Row { on, verdict, why } in map.rows() {
        out.push_str(&row(&on.to_string(), verdict.as_str(), verdict.holds(), why));
    }
    let other = Verdict::Retry;
    out + row("other", other.as_str(), other.holds(), "any other status").as_str()
}

fn notes() -> String {
    format!(
        "The first matching row decides; the narrowest come first.\n\
         settle: handled. retry: retried in its place, according to `retry`; a `Retry-After` in the answer takes precedence.\n\
         hold: the same, and nothing else of its share (`share_by`) is attempted until then; without a share, like retry. A 503 with `Retry-After` does this, too.\n\
         pause_share: its share waits for an operator, as after a 410; without a share, a dead letter.\n\
         pause: the handler pauses and probes, no event is at fault, `/healthz` is red. reject: a dead letter.\n\
         park: its key waits for an operator; without `order_by`, a dead letter.\n\
         An output retries until the event is stored, pauses and probes like a handler, and rejects where a handler parks.\n\
         The response header `{OUTCOME}: retry`, `reject` or `park` takes precedence over the status.\n\
         `http: {{ status: {{ 404: retry, 5xx: park, timeout: reject }} }}` in a handler or output replaces rows.\n"
    )
}
