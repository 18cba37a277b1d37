use cloudevents::AttributesReader;
use proptest::prelude::*;
use serde_json::Value;

use super::{Data, Event, tests::event};

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
        match event.data() {
            Data::Json(_) => {
                let (data, kept) = (event.data_as::<Value>(), back.data_as::<Value>());
                prop_assert_eq!(data.ok(), kept.ok());
            }
            data => prop_assert_eq!(back.data(), data),
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
