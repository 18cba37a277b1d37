//! Builds the program of each folder whose tools are installed. What cannot be
//! built is left out, and said.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::{Failure, contestant::Launch};

/// Lines of what a build has said that are shown when it fails.
const TAIL: usize = 20;

/// The program, and what it is started with.
type Started = (PathBuf, Vec<OsString>);

/// What a build needs.
struct Tool {
    is_there: fn() -> bool,
    install: &'static str,
}

/// A folder with a program.
struct Folder {
    name: &'static str,
    language: &'static str,
    /// Beside this crate.
    path: &'static str,
    /// Without it, there is nothing to build.
    file: &'static str,
    needs: &'static [Tool],
    build: fn(&Place) -> Result<Started, Failure>,
}

const GO: Tool = Tool { is_there: || on_path("go"), install: "go (https://go.dev/dl)" };
const JAVA: Tool = Tool {
    is_there: || on_path("java") && on_path("javac"),
    install: "a JDK (java, javac), version 17 or later",
};
const MAVEN: Tool = Tool { is_there: || on_path("mvn"), install: "mvn (Apache Maven)" };
const CMAKE: Tool = Tool { is_there: || on_path("cmake"), install: "cmake" };
const CPP: Tool = Tool { is_there: || on_path("c++"), install: "c++ (a C++ compiler)" };
const CAF: Tool = Tool {
    is_there: || has_header("caf/actor_pool.hpp"),
    install: "CAF, the C++ Actor Framework (Debian and Ubuntu: libcaf-dev)",
};
const JSON: Tool = Tool {
    is_there: || has_header("nlohmann/json.hpp"),
    install: "JSON for Modern C++ (Debian and Ubuntu: nlohmann-json3-dev)",
};

const FOLDERS: [Folder; 5] = [
    Folder {
        name: "pools",
        language: "Rust",
        path: "pools",
        file: "Cargo.toml",
        needs: &[],
        build: |place| cargo(&place.bench, "pools", &["serve"]),
    },
    Folder {
        name: "rust",
        language: "Rust",
        path: "rust",
        file: "Cargo.toml",
        needs: &[],
        build: |place| cargo(&place.folder, "peers", &[]),
    },
    Folder { name: "go", language: "Go", path: "go", file: "go.mod", needs: &[GO], build: go },
    Folder {
        name: "jvm",
        language: "Java",
        path: "jvm",
        file: "pom.xml",
        needs: &[JAVA, MAVEN],
        build: maven,
    },
    Folder {
        name: "cpp",
        language: "C++",
        path: "cpp",
        file: "CMakeLists.txt",
        needs: &[CMAKE, CPP, CAF, JSON],
        build: cmake,
    },
];

/// Where one is built.
struct Place {
    bench: PathBuf,
    folder: PathBuf,
    /// For what is built, where its tools have no place of their own.
    output: PathBuf,
}

/// What there is to start, and what was left out and why.
#[derive(Default)]
pub struct Built {
    pub launches: Vec<Launch>,
    /// What is not installed: no reason to fail.
    pub left_out: Vec<String>,
    pub failed: Vec<String>,
}

/// Builds all, with a line on standard error for each.
pub fn build() -> Result<Built, Failure> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    // Beside this program's own profile: `target/compare`.
    let own = env::current_exe()?;
    let target = own.parent().and_then(Path::parent).ok_or("this program lies nowhere")?;
    let mut built = Built::default();
    for folder in &FOLDERS {
        let output = target.join("compare").join(folder.name);
        let place = Place { bench: bench.clone(), folder: bench.join(folder.path), output };
        folder.build(&place, &mut built);
    }
    Ok(built)
}

impl Folder {
    fn build(&self, place: &Place, built: &mut Built) {
        let missing: Vec<_> = self.needs.iter().filter(|tool| !(tool.is_there)()).collect();
        if !place.folder.join(self.file).exists() {
            built.left_out.push(format!("{}: bench/{} has no {}", self.name, self.path, self.file));
        } else if !missing.is_empty() {
            let install: Vec<_> = missing.iter().map(|tool| tool.install).collect();
            built.left_out.push(format!(
                "{}: to have it, install {}",
                self.name,
                install.join("; ")
            ));
        } else {
            eprintln!("building {} …", self.name);
            let since = Instant::now();
            match fs::create_dir_all(&place.output)
                .map_err(Failure::from)
                .and_then(|()| (self.build)(place))
            {
                Ok((program, args)) => {
                    eprintln!("built {} in {:.0} s", self.name, since.elapsed().as_secs_f64());
                    built.launches.push(Launch {
                        name: self.name,
                        language: self.language,
                        program,
                        args,
                    });
                }
                Err(error) => built.failed.push(format!("{}: {error}", self.name)),
            }
        }
    }
}

fn on_path(command: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_executable(&folder.join(command)))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether the compiler finds it.
fn has_header(header: &str) -> bool {
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-E", "-x", "c++", "-include", header, "/dev/null"]);
    let ran = compiler.stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

fn cargo(workspace: &Path, package: &str, args: &[&str]) -> Result<Started, Failure> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--profile", "measure", "--package", package, "--manifest-path"]);
    cargo.arg(workspace.join("Cargo.toml")).arg("--message-format=json-render-diagnostics");
    let said = run(&mut cargo)?;
    let program = executable(&said, package);
    let program = program.ok_or_else(|| format!("cargo built no program {package}"))?;
    Ok((program, args.iter().map(OsString::from).collect()))
}

/// Where cargo has put it, of what cargo says of all that it has built.
fn executable(said: &str, package: &str) -> Option<PathBuf> {
    said.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let program = message["executable"].as_str()?;
        (message["target"]["name"] == package).then(|| PathBuf::from(program))
    })
}

fn go(place: &Place) -> Result<Started, Failure> {
    let program = place.output.join("peers");
    run(Command::new("go")
        .current_dir(&place.folder)
        .arg("build")
        .arg("-o")
        .arg(&program)
        .arg("."))?;
    Ok((program, Vec::new()))
}

fn maven(place: &Place) -> Result<Started, Failure> {
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-DskipTests", "package"]).current_dir(&place.folder);
    run(&mut maven)?;
    let jar = built(place.folder.join("target").join("compare-jvm.jar"))?;
    Ok(("java".into(), vec!["-jar".into(), jar.into()]))
}

fn cmake(place: &Place) -> Result<Started, Failure> {
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&place.folder).arg("-B").arg(&place.output);
    run(configure.arg("-DCMAKE_BUILD_TYPE=Release"))?;
    let mut build = Command::new("cmake");
    run(build.arg("--build").arg(&place.output).args(["--target", "compare-cpp"]))?;
    Ok((built(place.output.join("compare-cpp"))?, Vec::new()))
}

/// What a build should have left.
fn built(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.exists() {
        return Ok(path);
    }
    Err(format!("the build succeeded without {}", path.display()).into())
}

/// Runs it to its end, and gives what it printed.
///
/// # Errors
/// With the tail of what it said, when it fails.
fn run(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    if ran.status.success() {
        return Ok(printed);
    }
    // What is meant for programs is no help here.
    let printed: Vec<_> = printed.lines().filter(|line| !line.starts_with('{')).collect();
    let said = format!("{}\n{}", printed.join("\n"), String::from_utf8_lossy(&ran.stderr));
    Err(format!("{name} failed ({}):\n{}", ran.status, tail(&said)).into())
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().collect();
    let tail = &lines[lines.len().saturating_sub(TAIL)..];
    tail.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(file: &'static str, needs: &'static [Tool], succeeds: bool) -> Built {
        let build: fn(&Place) -> Result<_, Failure> = match succeeds {
            true => |_| Ok(("true".into(), Vec::new())),
            false => |_| {
                let script = "seq 1 30; echo '{\"reason\": 1}'; echo wrong >&2; exit 7";
                run(Command::new("sh").args(["-c", script])).map(|_| ("true".into(), Vec::new()))
            },
        };
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = env::temp_dir().join(format!("building-{}", std::process::id()));
        let place = Place { bench: own.into(), folder: own.into(), output };
        let mut built = Built::default();
        Folder { name: "fake", language: "sh", path: "fake", file, needs, build }
            .build(&place, &mut built);
        built
    }

    #[test]
    fn a_folder_whose_tools_are_missing_is_left_out() {
        const NONE: Tool = Tool { is_there: || on_path("no-such-tool"), install: "a tool" };
        let built = folder("Cargo.toml", &[NONE], true);
        assert_eq!(built.left_out, ["fake: to have it, install a tool"]);
        assert_eq!(folder("nothing", &[], true).left_out, ["fake: bench/fake has no nothing"]);
        assert_eq!(folder("Cargo.toml", &[], true).launches.len(), 1);
    }

    #[test]
    fn a_build_that_fails_shows_the_tail_of_what_it_said() {
        let failed = folder("Cargo.toml", &[], false).failed.join("");
        assert!(failed.starts_with("fake: sh failed (exit status: 7):\n    12\n"), "{failed}");
        assert!(failed.ends_with("    30\n    wrong"), "{failed}");
    }

    #[test]
    fn cargo_says_where_a_program_lies() {
        let library = r#"{"executable": null, "target": {"name": "peers"}}"#;
        let program = r#"{"executable": "/a/peers", "target": {"name": "peers"}}"#;
        let said = format!("{library}\n{program}\n");
        assert_eq!(executable(&said, "peers"), Some("/a/peers".into()));
        assert_eq!(executable(&said, "pools"), None);
    }
}
