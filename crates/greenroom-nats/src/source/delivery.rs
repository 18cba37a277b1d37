//! The delivery data in the reply subject of a message.

use std::time::{Duration, SystemTime};

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The position of the message in its stream.
    pub(super) position: u64,
    /// Its number among the deliveries of the consumer, which has no gaps.
    pub(super) number: u64,
    /// When the message was stored.
    pub(super) stored: SystemTime,
    /// Messages that the consumer has not delivered yet.
    pub(super) pending: u64,
}

impl Delivery {
    /// Reads `$JS.ACK.STREAM.CONSUMER.DELIVERIES.POSITION.NUMBER.TIME.PENDING`; newer servers have
    /// a domain and an account before the stream, and may have a token behind all. `None` for any
    /// other subject.
    pub(super) fn read(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.split('.').collect();
        let from = match tokens.len() {
            9 => 4,
            11.. => 6,
            _ => return None,
        };
        if tokens[..2] != ["$JS", "ACK"] {
            return None;
        }
        let number = |token: usize| tokens[from + token].parse::<u64>().ok();
        let stored = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(number(3)?))?;
        let (position, pending) = (number(1)?, number(4)?);
        // There has to be room for one more position above it.
        (position < u64::MAX).then_some(())?;
        Some(Self { position, number: number(2)?, stored, pending })
    }
}

/// The subject for acknowledging a message whose delivery was not seen: the server goes by its
/// position.
pub(super) fn unseen(stream: &str, consumer: &str, position: u64) -> String {
    format!("$JS.ACK.{stream}.{consumer}.1.{position}.1.0.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n06_a_reply_subject_of_either_form_is_read() {
        let read = Delivery::read("$JS.ACK.orders.shop.2.70.81.1700000000000000001.5").unwrap();
        assert_eq!((read.position, read.number, read.pending), (70, 81, 5));
        let since = read.stored.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_nanos(), 1_700_000_000_000_000_001);
        let newer = "$JS.ACK.hub.ACC.orders.shop.2.70.81.1700000000000000001.5";
        assert_eq!(Delivery::read(newer), Some(read));
        assert_eq!(Delivery::read(&format!("{newer}.random")), Some(read));
    }

    #[test]
    fn n02_the_reply_subject_of_an_unseen_delivery_is_one() {
        let read = Delivery::read(&unseen("orders", "shop", 70)).unwrap();
        assert_eq!((read.position, read.pending), (70, 0));
    }

    #[test]
    fn n06_what_is_no_reply_subject_is_none() {
        for other in [
            "",
            "_INBOX.a.b",
            "$JS.ACK.a.b.1.2.3.4",
            "$JS.ACK.a.b.1.x.3.4.5",
            "$JS.NAK.a.b.1.2.3.4.5",
            "$JS.ACK.a.b.1.18446744073709551615.3.4.5",
            "$JS.ACK.a.b.1.2.3.-4.5",
        ] {
            assert_eq!(Delivery::read(other), None, "{other}");
        }
    }
}
