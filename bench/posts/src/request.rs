//! A post whose bytes are made once: only the ids change, so that the senders cost little.

use std::io::Write;

use crate::SIZE;

/// Digits of a number in an id.
const DIGITS: usize = 10;

/// A post of one sender.
pub struct Request {
    bytes: Vec<u8>,
    /// Where the numbers of its events stand.
    numbers: Vec<usize>,
    next: usize,
}

impl Request {
    pub fn new(sender: usize, batch: usize) -> Self {
        let event = json(sender);
        let (ty, body) = match batch {
            1 => ("application/cloudevents+json", event),
            _ => {
                let events = vec![event; batch].join(",");
                ("application/cloudevents-batch+json", format!("[{events}]"))
            }
        };
        let length = body.len();
        let head = format!(
            "POST /events HTTP/1.1\r\nhost: h\r\ncontent-type: {ty}\r\ncontent-length: {length}\r\n\r\n"
        );
        let text = head + &body;
        let number = "0".repeat(DIGITS);
        let numbers = text.match_indices(&number).map(|(at, _)| at).collect();
        Self { bytes: text.into_bytes(), numbers, next: 0 }
    }

    /// The next one, with ids that were not used yet.
    pub fn next(&mut self) -> &[u8] {
        for at in &self.numbers {
            let mut place = &mut self.bytes[*at..*at + DIGITS];
            let _ = write!(place, "{:0DIGITS$}", self.next);
            self.next += 1;
        }
        &self.bytes
    }
}

pub fn id(sender: usize, number: usize) -> String {
    format!("{sender:02}-{number:0DIGITS$}")
}

/// Data that makes an event as long as it is to be.
pub fn filler() -> String {
    "x".repeat(SIZE - r#"{"specversion":"1.0","id":"00-0000000000","source":"/bench","type":"t","data":""}"#.len())
}

fn json(sender: usize) -> String {
    let (id, data) = (id(sender, 0), filler());
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/bench","type":"t","data":"{data}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_an_id_of_its_own() {
        let mut request = Request::new(7, 2);
        request.next();
        let text = String::from_utf8_lossy(request.next()).into_owned();
        assert!(text.contains(&id(7, 2)) && text.contains(&id(7, 3)), "{text}");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        assert_eq!(body.len(), 2 * SIZE + 3);
    }
}
