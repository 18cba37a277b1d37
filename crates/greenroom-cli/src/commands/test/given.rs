//! The events that a case gives to its input.

use bytes::Bytes;
use greenroom_bus::{
    record::Record,
    source::{
        Malformed, Taken,
        http::{self, HttpInput, Message, Reading},
    },
};

use super::options::{CaseOptions, RecordOptions, RequestOptions, bytes, events};
use crate::config::{Config, InputConfig, Kinds, RecordsConfig};

/// The input of a case, and the items that it gives.
pub(super) struct Given<'c> {
    pub(super) input: &'c InputConfig,
    pub(super) items: Vec<Taken>,
    /// The status that the sender of a request gets.
    pub(super) reply: Option<u16>,
}

/// # Errors
/// The input takes nothing of the kind.
pub(super) fn given<'c>(config: &'c Config, case: &CaseOptions) -> Result<Given<'c>, String> {
    let named = |input: &&InputConfig| case.input.as_ref().is_none_or(|name| *name == input.name);
    let input = config.inputs.iter().find(named).ok_or("the configuration has no such input")?;
    let mut reply = None;
    let events = if let Some(record) = &case.record {
        vec![of_record(input, record)?]
    } else if let Some(request) = &case.request {
        let (status, events) = of_request(input, request)?;
        reply = Some(status);
        events
    } else {
        let events = case.event.as_ref().map(events).transpose()?.unwrap_or_default();
        events.into_iter().map(Ok).collect()
    };
    let items = (1..).zip(events).map(|(position, event)| Taken { position, event });
    Ok(Given { input, items: items.collect(), reply })
}

type Item = Result<greenroom_bus::event::Event, Malformed>;

fn of_record(input: &InputConfig, record: &RecordOptions) -> Result<Item, String> {
    let Some(records) = &input.records else {
        let name = &input.name;
        return Err(format!("the input `{name}` has no `records`; write an `event` in its place"));
    };
    let headers: Vec<_> = headers(&record.headers);
    let value = record.value.as_ref().map(bytes);
    let found = Record {
        key: record.key.as_ref().map(String::as_bytes),
        headers: &headers,
        topic: record.topic.as_deref(),
        path: record.path.as_deref(),
        ..Record::new(value.clone(), &1)
    };
    let raw = value.unwrap_or_default().to_vec();
    let event = records.mapping()?.event(&found);
    Ok(event.map_err(|why| Malformed::new(raw, why.to_string())))
}

fn of_request(input: &InputConfig, request: &RequestOptions) -> Result<(u16, Vec<Item>), String> {
    let Some(options) = input.kind.downcast_ref::<HttpInput>() else {
        let (name, kind) = (&input.name, input.kind.key());
        return Err(format!("the input `{name}` is a `{kind}` input, and takes no request"));
    };
    let mapping = input.records.as_ref().map(RecordsConfig::mapping).transpose()?;
    let reading = Reading {
        records: mapping.as_ref(),
        max_event: usize::try_from(options.max_event).unwrap_or(usize::MAX),
        max_batch: options.max_batch,
    };
    let path = request.path.as_deref().unwrap_or(&options.path);
    let body: Bytes = request.body.as_ref().map(bytes).unwrap_or_default();
    let headers = headers(&request.headers);
    Ok(match http::read(&Message { path, headers: &headers, body: &body }, &reading) {
        Ok(events) => (202, events.into_iter().map(Ok).collect()),
        Err(why) => (why.status().as_u16(), Vec::new()),
    })
}

fn headers(pairs: &[(String, String)]) -> Vec<(&str, &[u8])> {
    pairs.iter().map(|(name, value)| (&**name, value.as_bytes())).collect()
}
