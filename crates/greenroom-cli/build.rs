//! Tells the program its commit and its features, which `greenroom --version` prints (C17).

#[path = "build/commit.rs"]
mod commit;

use std::{env, path::Path};

use self::commit::Commit;

fn main() {
    let given = env::var("GREENROOM_COMMIT").ok();
    let Commit { name, watched } = commit::of(Path::new(env!("CARGO_MANIFEST_DIR")), given);
    println!("cargo::rustc-env=GREENROOM_COMMIT={name}");
    println!("cargo::rustc-env=GREENROOM_FEATURES={}", features());
    // Naming what is watched keeps cargo from building anew whenever any file of the package
    // changes.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/commit.rs");
    println!("cargo::rerun-if-env-changed=GREENROOM_COMMIT");
    for path in watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The cargo features of this build, as cargo tells them to a build script:
/// `CARGO_FEATURE_SOME_NAME`.
fn features() -> String {
    let mut names: Vec<_> = env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()))
        .filter(|name| name != "default")
        .map(|name| name.replace('_', "-"))
        .collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
