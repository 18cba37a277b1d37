use cloudevents::AttributesReader;
use proptest::prelude::*;
use serde_json::Value;

use super::{Data, Event, EventBuilder, tests::event};

fn written(event: &Event) -> String {
    let mut out = Vec::new();
    event.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn m01_the_sdk_reads_what_we_write() {
    let event = Event::builder("1", "/shop", "order.placed")
        .subject("c-7")
        .time("2026-01-31T12:00:00Z")
        .datacontenttype("application/json")
        .extension("priority", 3)
        .data_json(&[1, 2])
        .build()
        .unwrap();
    let theirs: cloudevents::Event = serde_json::from_str(&written(&event)).unwrap();
    assert_eq!((theirs.id(), theirs.ty(), theirs.subject()), ("1", "order.placed", Some("c-7")));
    assert_eq!(theirs.source().as_str(), "/shop");
    let back = Event::parse(serde_json::to_string(&theirs).unwrap().as_bytes()).unwrap();
    assert_eq!(back.time().map(|time| &time[..19]), Some("2026-01-31T12:00:00"));
    assert_eq!(back.extension("priority"), event.extension("priority"));
    assert_eq!(back.data_as::<Vec<u8>>().unwrap(), [1, 2]);
}

/// The value that bytes are in JSON. The SDK takes bytes without a content type for JSON wherever
/// they can be read as such.
fn as_json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn m01_the_sdk_makes_json_of_bytes_that_are_json() {
    let read = |builder: EventBuilder<'_>| -> cloudevents::Event {
        serde_json::from_str(&written(&builder.data_binary(&b"0"[..]).build().unwrap())).unwrap()
    };
    let untyped = read(Event::builder("1", "/shop", "t"));
    assert_eq!(untyped.data(), Some(&cloudevents::Data::Json(0.into())));
    let typed = read(Event::builder("1", "/shop", "t").datacontenttype("image/png"));
    assert_eq!(typed.data(), Some(&cloudevents::Data::Binary(b"0".to_vec())));
}

proptest! {
    #[test]
    fn m01_events_survive_the_sdk(event in event()) {
        let theirs: cloudevents::Event = serde_json::from_str(&written(&event)).unwrap();
        let back = Event::parse(serde_json::to_string(&theirs).unwrap().as_bytes()).unwrap();
        prop_assert_eq!((back.id(), back.ty(), back.source()), (event.id(), event.ty(), event.source()));
        prop_assert_eq!(back.subject(), event.subject());
        for (name, value) in event.extensions() {
            prop_assert_eq!(back.extension(name), Some(value));
        }
        match (event.data(), back.data()) {
            (Data::Json(_), _) => {
                let (data, kept) = (event.data_as::<Value>(), back.data_as::<Value>());
                prop_assert_eq!(data.ok(), kept.ok());
            }
            (Data::Binary(bytes), Data::Json(kept)) => prop_assert_eq!(as_json(bytes), as_json(kept.get().as_bytes())),
            (data, kept) => prop_assert_eq!(kept, data),
        }
    }

    #[test]
    fn m01_batches_survive_the_sdk(events in prop::collection::vec(event(), 0..4)) {
        let mut ours = Vec::new();
        Event::write_batch(&events, &mut ours);
        let theirs: Vec<cloudevents::Event> = serde_json::from_slice(&ours).unwrap();
        let back = Event::parse_batch(&serde_json::to_vec(&theirs).unwrap()).unwrap();
        let ids = |events: &[Event]| events.iter().map(|event| event.id().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(ids(&back), ids(&events));
    }
}
