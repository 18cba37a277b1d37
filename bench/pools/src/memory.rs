//! Workload E: resident memory. Each figure comes from a process of its own, as an allocator keeps what others have freed.

use std::str::FromStr;

use crate::{Failure, measure::Side};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// 256 inboxes of 1,000 messages of 200 bytes, all full; growth as a multiple of the payload.
    Full,
}

impl Memory {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Self::Full => "payload",
        }
    }
}

impl FromStr for Memory {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        match text {
            "full" => Ok(Self::Full),
            other => Err(format!("{other} is no measurement of memory").into()),
        }
    }
}

pub fn in_child(_memory: Memory, _side: Side) -> Result<f64, Failure> {
    Err("not yet".into())
}

pub fn measure(_memory: Memory, _side: Side) -> Result<f64, Failure> {
    Err("not yet".into())
}
