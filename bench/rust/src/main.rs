//! Rust's channels and actor frameworks as systems of a comparison: reads requests from standard
//! input, a line of JSON each, and answers each with a figure or an error. `bench/PROTOCOL.md` says
//! what is asked and how it is measured.
//!
//! `cargo build --profile measure --manifest-path bench/rust/Cargo.toml`

use std::{io, process::ExitCode};

mod arrivals;
mod bench;
mod calls;
mod full;
mod keyed;
mod keys;
mod latency;
mod message;
mod offers;
mod peers;
mod protocol;
mod route;
mod row;
mod runtime;
mod stage;
mod system;
mod task;
mod threads;
mod unkeyed;
mod window;
mod work;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let offers = offers::all();
    match protocol::serve(&offers, &bench::Bench::new(), io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
