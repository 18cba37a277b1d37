//! The conformance suite passes what is right and fails what is wrong, each by the check that is
//! there for it (V01).

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod faults;
mod faulty;
mod honest;
