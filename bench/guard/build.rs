//! Tells the program which compiler built it.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let printed = Command::new(rustc).arg("--version").output().map(|ran| ran.stdout);
    let version = printed.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    println!(
        "cargo::rustc-env=BUILT_BY={}",
        version.unwrap_or_else(|_| "rustc unknown".to_owned())
    );
    println!("cargo::rerun-if-changed=build.rs");
}
