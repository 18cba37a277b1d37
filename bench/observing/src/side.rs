//! Ways of being looked at, and the configuration for each.

use crate::pace::Pace;

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Off,
    Listener,
    Watched,
    Otlp,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Off, Self::Listener, Self::Watched, Self::Otlp];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Listener => "listener",
            Self::Watched => "watched",
            Self::Otlp => "otlp",
        }
    }

    /// The configuration; `port` is that of the admin listener, or of the receiver.
    pub fn configuration(self, pace: Pace, port: u16) -> String {
        let Pace { rate, workers, .. } = pace;
        let looked_at = match self {
            Self::Off => String::new(),
            Self::Listener | Self::Watched => format!("admin: {{ listen: '127.0.0.1:{port}' }}\n"),
            Self::Otlp => {
                format!("telemetry: {{ otlp: {{ endpoint: 'http://127.0.0.1:{port}' }} }}\n")
            }
        };
        format!(
            "inputs: {{ made: {{ generator: {{ count: {}, rate: {rate}/s, keys: 100000 }} }} }}\n\
             pools: {{ default: {{ workers: {workers} }} }}\n\
             handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}\n\
             {looked_at}",
            pace.events()
        )
    }
}
