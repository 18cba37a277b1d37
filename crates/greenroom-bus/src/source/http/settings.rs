//! The limits of an intake, and its clients: all of it can change while it is open.

use std::{sync::Arc, time::Duration};

use super::{access::Access, tls::ServerTls, webhook::Webhook};
use crate::record::Mapping;

/// The limits of an intake, and its clients.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    /// The clients that may post. Default: all.
    pub access: Option<Access>,
    /// Which webhook senders are allowed to post. Default: `OPTIONS` is refused.
    pub webhook: Option<Webhook>,
    /// Default: plain HTTP. Whether it is TLS cannot change while it is open; certificates can.
    pub tls: Option<ServerTls>,
    /// The rule for messages that are no CloudEvents. Default: they are refused.
    pub records: Option<Arc<Mapping>>,
    /// The largest event, in bytes: as a message of its own, and about as a line of JSON. Default:
    /// 1 MiB.
    pub max_event: usize,
    /// The largest body of a batch, in bytes. Default: 16 MiB.
    pub max_body: usize,
    /// The most events of a batch. Default: 10,000.
    pub max_batch: usize,
    /// The most connections at once; no more than half of the descriptors of the process, whatever
    /// this is. Default: 1,024.
    pub connections: usize,
    /// How many bytes of bodies may be in memory at once. A body is counted as it comes in, until
    /// its events are stored. Default: 64 MiB.
    pub bodies: usize,
    /// How long a client may take for the headers of a request, counted from the connection or the
    /// last answer, and for the handshake of TLS. Default: 30 s.
    pub header_timeout: Duration,
    /// How long it may take for the body. Default: 30 s.
    pub body_timeout: Duration,
}
