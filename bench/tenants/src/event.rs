//! A message as an event, and back.

use std::time::Duration;

use greenroom_bus::event::{Event, EventError, ExtensionValue};

use crate::load::Job;

pub fn of_job(job: &Job) -> Result<Event, EventError> {
    Event::builder(format!("{}-{}", job.tenant, job.number), "bench:tenants", "job")
        .subject(job.key.to_string())
        .extension("tenant", i64::from(job.tenant))
        .extension("takes", job.takes.as_micros() as i64)
        .build()
}

/// As it is published: JSON, which every source takes for an event.
pub fn json(job: &Job) -> Result<Vec<u8>, EventError> {
    let mut json = Vec::new();
    of_job(job)?.write_json(&mut json);
    Ok(json)
}

pub fn job(event: &Event) -> Job {
    let number = |name: &str| match event.extension(name) {
        Some(ExtensionValue::Integer(number)) => *number as u64,
        _ => 0,
    };
    let (_, id) = event.id().rsplit_once('-').unwrap_or_default();
    Job {
        tenant: number("tenant") as u32,
        key: 0,
        number: id.parse().unwrap_or_default(),
        takes: Duration::from_micros(number("takes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_all_of_its_message_but_the_key_which_is_its_subject() {
        let takes = Duration::from_millis(5);
        let sent = Job { tenant: 7, key: 3, number: 12, takes };
        let event = Event::parse(&json(&sent).unwrap()).unwrap();
        let Job { tenant, number, takes, .. } = job(&event);
        assert_eq!((tenant, number, takes), (sent.tenant, sent.number, sent.takes));
        assert_eq!(event.subject().map(|subject| &**subject), Some("3"));
    }
}
