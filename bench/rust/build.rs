//! Tells the program which compiler built it, and from which versions of the
//! packages that it compares.

use std::{env, error::Error, fs, path::Path, process::Command};

/// Packages whose versions are said; each becomes a variable, `VERSION_` and its name in capitals.
const PACKAGES: [&str; 7] =
    ["actix", "crossbeam-channel", "flume", "kameo", "kameo_actors", "kanal", "ractor"];

fn main() -> Result<(), Box<dyn Error>> {
    let lock = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    for package in PACKAGES {
        let version = version(&text, package)
            .ok_or_else(|| format!("{}: {package} is not in there, or twice", lock.display()))?;
        println!("cargo::rustc-env=VERSION_{}={version}", variable(package));
    }
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let printed = Command::new(rustc).arg("--version").output()?.stdout;
    println!("cargo::rustc-env=BUILT_BY={}", String::from_utf8_lossy(&printed).trim());
    Ok(())
}

fn variable(package: &str) -> String {
    package.replace('-', "_").to_uppercase()
}

/// The line after the name of a package, as cargo writes it; nothing where two versions are in use.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
    lines.all(|line| line != name).then_some(version)
}
