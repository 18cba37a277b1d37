//! Topics that come and go while it runs (C09).

use rustix::process::Signal;
use serde_json::json;

use crate::kafka::{
    daemon::{Daemon, wait},
    stage::Stage,
    topics::{all_of, broker, by_key, input, publish, unique},
};

fn config(inputs: &[String], outputs: &str) -> String {
    format!(
        "
inputs: {{ {} }}
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ {outputs} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        inputs.join(", ")
    )
}

#[test]
fn c09_inputs_and_outputs_of_kafka_come_and_go_with_a_reload() {
    let Some(broker) = broker() else { return };
    let (first, second, to) = (unique("first"), unique("second"), unique("to"));
    let (group, other) = (unique("g"), unique("g"));
    let a = format!("a: {}", input(&broker, (&first, &group), ""));
    let b = format!("b: {}", input(&broker, (&second, &other), ""));
    let file = "out: { file: { path: out } }";
    let topic = format!("topic: {{ kafka: {{ brokers: '{broker}', topic: {to}, key: subject }} }}");
    let both = format!("{topic}, {file}");
    let stage = Stage::with(&config(std::slice::from_ref(&a), file));
    publish(&stage, &broker, &first, &by_key(40, 10));
    publish(&stage, &broker, &second, &by_key(30, 10));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 40).then_some(()));

    // Another input, and an output before the one that there is.
    stage.write("greenroom.yaml", config(&[a.clone(), b.clone()], &both));
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, &answer["left"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["changed"], json!(["outputs.topic (added)", "inputs.b (added)"]));
    daemon.wait_for("/api/run", |run| run["settled"] == 70);
    assert_eq!(all_of(&broker, &to, 30).len(), 30);
    assert_eq!(stage.count_lines("out"), 40);

    // The first is gone; what comes for it waits in its topic.
    stage.write("greenroom.yaml", config(std::slice::from_ref(&b), &both));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["inputs.a (removed)"]), "{answer}");
    wait(|| daemon.log().contains("all its events are settled").then_some(()));
    publish(&stage, &broker, &first, &by_key(5, 5));

    // Other settings of one that stays are named and left.
    let changed = b.replace(&other, &group);
    stage.write("greenroom.yaml", config(&[changed], file));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["outputs.topic (removed)"]), "{answer}");
    assert_eq!(answer["left"][0]["what"], "inputs.b", "{answer}");

    // It comes back under its name, and goes on where its group was.
    stage.write("greenroom.yaml", config(&[a, b], file));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["inputs.a (added)"]), "{answer}");
    wait(|| (stage.count_lines("out") == 45).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [75, 75, 0, 0]);
}
