//! The binary as a user meets it: exit codes, what goes where, and no stack traces.

mod bench;
#[cfg(target_os = "linux")]
mod colour;
mod completions;
mod demo;
mod man;
mod route;
mod store;
mod test_files;
mod version;

use std::{
    path::Path,
    process::{Command, Output},
};

const GOOD: &str =
    "inputs: { i: { generator: { count: 1 } } }\nhandlers: { h: { on: '**', pass: } }\n";

/// Every command, in the order of the help. Tests look for each in completions, pages and help.
const COMMANDS: [&str; 24] = [
    "run",
    "check",
    "why",
    "advise",
    "status",
    "key",
    "pool",
    "share",
    "handler",
    "output",
    "reload",
    "top",
    "dead-letters",
    "route",
    "test",
    "explain-status",
    "send",
    "schema",
    "init",
    "demo",
    "bench",
    "store",
    "completions",
    "man",
];

fn greenroom(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_greenroom"))
        .args(args)
        .current_dir(directory)
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn c02_check_answers_0_for_a_good_configuration() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("c.yaml"), GOOD).unwrap();
    let output = greenroom(directory.path(), &["check", "c.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "c.yaml: no problems (1 input, 1 pool, 1 handler, 0 outputs)\n");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn c01_check_and_run_answer_2_for_a_bad_one_and_say_where() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("c.yaml"), format!("{GOOD}shutdwon: {{}}\n")).unwrap();
    for command in ["check", "run"] {
        let output = greenroom(directory.path(), &[command, "c.yaml"]);
        assert_eq!(code(&output), 2);
        assert_eq!(stdout(&output), "");
        let text = stderr(&output);
        assert!(text.contains(" --> c.yaml:3:1\n"), "{text}");
        assert!(text.contains("did you mean `shutdown`?") && text.ends_with("1 error\n"), "{text}");
        assert!(!text.contains('\x1b'), "no colour codes without a terminal: {text}");
    }
}

#[test]
fn c01_settings_reach_the_check() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("c.yaml"), GOOD).unwrap();
    let output =
        greenroom(directory.path(), &["check", "c.yaml", "--set", "pools.default.workers=0"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains(" --> --set pools.default.workers\n"), "{}", stderr(&output));
}

#[test]
fn a_missing_configuration_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["run", "none.yaml"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("greenroom init"), "{}", stderr(&output));
}

#[test]
fn c01_wrong_command_lines_answer_2_and_help_answers_0() {
    let directory = tempfile::tempdir().unwrap();
    for args in [
        &["frobnicate"][..],
        &[],
        &["check"],
        &["run", "x", "--report", "xml"],
        &["schema", "--log-level", "loud"],
        &["init", "nonsense"],
    ] {
        let output = greenroom(directory.path(), args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty());
    }
    for args in [&["--help"][..], &["--version"], &["run", "--help"]] {
        assert_eq!(code(&greenroom(directory.path(), args)), 0, "{args:?}");
    }
    let unknown = greenroom(directory.path(), &["init", "nonsense"]);
    assert!(stderr(&unknown).contains("use one of `greenroom init orders`"));
}

/// A command that is added comes into the list, and so into what each test looks for.
#[test]
fn c17_the_list_of_commands_is_that_of_the_help() {
    let help = stdout(&greenroom(Path::new("."), &["--help"]));
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // What a line begins with; a line that goes on is indented further.
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let listed: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, [&COMMANDS[..], &["help"]].concat());
}

#[test]
fn c17_the_page_of_commands_has_each_of_them() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let page = std::fs::read_to_string(page).unwrap();
    for command in COMMANDS {
        assert!(page.contains(&format!("| `greenroom {command}")), "{command}");
    }
}

#[test]
fn schema_prints_json() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["schema"]);
    assert_eq!(code(&output), 0);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn c03_init_of_a_broker_writes_what_there_is_to_try_and_says_what_to_do() {
    for (broker, files, publish) in [
        ("kafka", &["greenroom.yaml", "publish.yaml"][..], "greenroom run shop/publish.yaml"),
        ("nats", &["greenroom.yaml"][..], "python3 shop/publish.py"),
        ("redis", &["greenroom.yaml"][..], "python3 shop/publish.py"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let output = greenroom(directory.path(), &["init", broker, "--dir", "shop"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let said = stdout(&output);
        for next in ["python3 shop/service.py", publish, "greenroom run shop/greenroom.yaml"] {
            assert!(said.contains(next), "{said}");
        }
        let is_built = env!("GREENROOM_FEATURES").contains(broker);
        assert_eq!(said.contains("cargo install greenroom-cli --features"), !is_built, "{said}");
        for file in files {
            let check = greenroom(directory.path(), &["check", &format!("shop/{file}")]);
            assert_eq!(code(&check), if is_built { 0 } else { 2 }, "{}", stderr(&check));
            let refusal = format!("was built without `{broker}`");
            assert_eq!(stderr(&check).contains(&refusal), !is_built, "{}", stderr(&check));
        }
        let service = std::fs::read_to_string(directory.path().join("shop/service.py")).unwrap();
        let lines = service.lines().filter(|line| !line.is_empty() && !line.starts_with("\"\"\""));
        assert_eq!(lines.count(), 10, "as the page says");
    }
}

#[test]
fn c03_init_knows_each_input_that_has_options_to_start_from() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["init", "generator"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let run = greenroom(directory.path(), &["run", "greenroom.yaml"]);
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let done = std::fs::read_to_string(directory.path().join("done.ndjson")).unwrap();
    assert_eq!(done.lines().count(), 1_000);
}

#[test]
fn c03_init_writes_a_configuration_that_passes_check_and_overwrites_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let first = greenroom(directory.path(), &["init", "--dir", "shop"]);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    assert!(
        stdout(&first).contains("next: greenroom run shop/greenroom.yaml"),
        "{}",
        stdout(&first)
    );
    let check = greenroom(directory.path(), &["check", "shop/greenroom.yaml"]);
    assert_eq!(code(&check), 0, "{}", stderr(&check));
    assert_eq!(stderr(&check), "");

    let worker = directory.path().join("shop/worker.py");
    std::fs::write(&worker, "mine").unwrap();
    std::fs::remove_file(directory.path().join("shop/greenroom.yaml")).unwrap();
    let second = greenroom(directory.path(), &["init", "orders", "--dir", "shop"]);
    assert_eq!(code(&second), 1);
    assert!(stderr(&second).contains("orders.ndjson"), "{}", stderr(&second));
    assert_eq!(std::fs::read_to_string(&worker).unwrap(), "mine");
    assert!(!directory.path().join("shop/greenroom.yaml").exists(), "all or nothing");

    let forced = greenroom(directory.path(), &["init", "--dir", "shop", "--force"]);
    assert_eq!(code(&forced), 0, "{}", stderr(&forced));
    assert_ne!(std::fs::read_to_string(&worker).unwrap(), "mine");
}

/// Skipped where there is no Python, as the configuration itself would say.
#[test]
fn u05_the_worker_of_init_answers_every_event() {
    use std::io::Write;
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    greenroom(directory.path(), &["init"]);
    let events = std::fs::read_to_string(directory.path().join("orders.ndjson")).unwrap();
    let events: Vec<_> = events.lines().filter(|line| line.contains("\"order.")).collect();
    let mut worker = Command::new("python3")
        .arg("worker.py")
        .current_dir(directory.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = worker.stdin.take().unwrap();
    for (token, event) in events.iter().enumerate() {
        writeln!(input, "{{\"token\":\"{token}\",\"attempt\":1,\"event\":{event}}}").unwrap();
    }
    drop(input);
    let output = worker.wait_with_output().unwrap();
    let text = stdout(&output);
    assert_eq!(text.lines().count(), events.len());
    assert_eq!(text.matches("\"reject\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"pass\"").count(), events.len() - 1, "{text}");
}

#[test]
fn c22_to_set_nothing_of_a_share_is_refused_with_what_can_be_set() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["share", "set", "default", "acme"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 2, "{said}");
    for option in ["--weight", "--in-hand", "--rate"] {
        assert!(said.contains(option), "{said}");
    }
}
