//! Bars and curves as SVG, each with a caption that says which machine, versions and
//! settings its figures are of.
//!
//! Both axes of values are logarithmic: what is compared differs by factors, and a
//! factor is a length there.

mod bars;
mod caption;
mod curves;
mod scale;

pub use self::{
    bars::{Bar, Bars},
    curves::{Curve, Curves, Panel},
};

/// Why a plot could not be drawn.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
