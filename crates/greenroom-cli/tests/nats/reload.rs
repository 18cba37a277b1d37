//! Streams that come and go while it runs (C09).

use rustix::process::Signal;
use serde_json::json;

use crate::nats::{
    daemon::{Daemon, wait},
    stage::Stage,
    streams::{Client, address, by_key, input, unique},
};

fn config(inputs: &[String]) -> String {
    format!(
        "
inputs: {{ {} }}
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ out: {{ file: {{ path: out }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        inputs.join(", ")
    )
}

#[test]
fn c09_inputs_of_nats_come_and_go_with_a_reload() {
    let Some(address) = address() else { return };
    let (first, second) = (unique("first"), unique("second"));
    let mut client = Client::connect(&address);
    client.make(&first);
    client.make(&second);
    client.publish(&first, &by_key(40, 10));
    client.publish(&second, &by_key(30, 10));
    let a = format!("a: {}", input(&address, (&first, "c"), "", ""));
    let b = format!("b: {}", input(&address, (&second, "c"), "", ""));
    let stage = Stage::with(&config(std::slice::from_ref(&a)));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 40).then_some(()));

    stage.write("greenroom.yaml", config(&[a.clone(), b.clone()]));
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, &answer["left"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["changed"], json!(["inputs.b (added)"]));
    wait(|| (stage.count_lines("out") == 70).then_some(()));

    // The first is gone; what comes for it waits in its stream.
    stage.write("greenroom.yaml", config(std::slice::from_ref(&b)));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["inputs.a (removed)"]), "{answer}");
    wait(|| daemon.log().contains("all its events are settled").then_some(()));
    client.publish(&first, &by_key(5, 5));

    // It comes back under its name, and goes on where its consumer was.
    stage.write("greenroom.yaml", config(&[a, b.replace("ack_wait: 2s", "ack_wait: 3s")]));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["inputs.a (added)"]), "{answer}");
    assert_eq!(answer["left"][0]["what"], "inputs.b", "{answer}");
    wait(|| (stage.count_lines("out") == 75).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [75, 75, 0, 0]);
}
