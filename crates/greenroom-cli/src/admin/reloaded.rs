//! The result of a reload, as an answer.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::answer::{Answer, Json, Refusal};
use crate::{config::Problems, run::reload::Reloaded};

/// The changes and the parts that stayed the same; or every mistake, and nothing has changed.
pub(super) fn told(reloaded: &Reloaded) -> Answer {
    match reloaded {
        Reloaded::Done { changed, left } => {
            let left: Vec<_> =
                left.iter().map(|left| json!({ "what": left.what, "why": left.why })).collect();
            Ok(Json::ok(json!({ "changed": changed, "left": left })))
        }
        Reloaded::Mistakes(problems) => Err(mistakes(problems)),
    }
}

fn mistakes(problems: &Problems) -> Refusal {
    let what =
        format!("the configuration has mistakes ({}): nothing was changed", problems.summary());
    let next = "correct it, try it with `greenroom check`, and reload again; until then the old one stays in effect";
    let mut refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, what, problems.file(), next);
    let details = problems.sorted().into_iter().map(|problem| {
        json!({ "what": problem.message, "where": problems.place(problem), "next": problem.help })
    });
    refusal.details = Some(Value::Array(details.collect()));
    refusal
}
