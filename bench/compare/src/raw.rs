//! Everything that was measured, for other programs to read.

use measure::Distance;
use serde_json::{Map, Value, json};

use crate::{
    limits::{limits, verdict},
    protocol::System,
    rounds::{Measured, Outcome, Series},
};

pub fn row(measured: &Measured, systems: &[&System]) -> Value {
    let row = measured.row;
    json!({
        "row": row.name,
        "what": row.what,
        "unit": row.unit(),
        "more_is_better": row.more_is_better(),
        "greenroom": {
            "messages": measured.own_messages.as_ref().ok(),
            "error": measured.own_messages.as_ref().err(),
            "alone": measured.alone.iter().map(outcome).collect::<Vec<_>>(),
        },
        "systems": measured.series.iter().map(|of| series(measured, of, systems)).collect::<Vec<_>>(),
    })
}

fn series(measured: &Measured, series: &Series, systems: &[&System]) -> Value {
    let (row, system) = (measured.row, systems[series.who]);
    let limits = limits(row.name, &system.name);
    let pair = |pair: &crate::rounds::Pair| json!({ "greenroom": outcome(&pair.own), "system": outcome(&pair.other) });
    json!({
        "name": system.name,
        "version": system.version,
        "language": system.language,
        "messages": series.messages.as_ref().ok(),
        "error": series.messages.as_ref().err(),
        "rounds": series.pairs.iter().map(pair).collect::<Vec<_>>(),
        "ratios": series.compared(row, None).ratios,
        "near_ratios": series.compared(row, Some(Distance::Near)).ratios,
        "far_ratios": series.compared(row, Some(Distance::Far)).ratios,
        "floor": limits.map(|limits| limits.floor),
        "target": limits.map(|limits| limits.target),
        "verdict": limits.map(|limits| verdict(limits, row, series)),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Ok(sample) => json!({
            "value": sample.value,
            "ping_pong_ns": sample.trips,
            "distance": Distance::of(&sample.trips).name(),
            "others_cores": sample.others,
        }),
        Err(error) => json!({ "error": error }),
    }
}

/// Texts under their names.
pub fn texts(texts: &[(&str, String)]) -> Value {
    let text = |(name, text): &(&str, String)| ((*name).to_owned(), json!(text));
    Value::Object(texts.iter().map(text).collect::<Map<_, _>>())
}

pub fn system(system: &System) -> Value {
    json!({
        "name": system.name,
        "version": system.version,
        "language": system.language,
        "what": system.what,
        "rows": system.rows,
    })
}
