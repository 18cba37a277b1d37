//! `greenroom init`: a configuration to start from, with data and a worker, that runs as it is.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use crate::{
    cli::InitArgs,
    config::lacking,
    exit::{self, Exit},
};

/// The worker of every template.
const WORKER: (&str, &str) = ("worker.py", include_str!("init/worker.py"));

/// A template: its name, its files, and what to do with them.
struct Template {
    name: &'static str,
    /// Name and content; the first is the configuration.
    files: &'static [(&'static str, &'static str)],
    next: fn(config: &str, directory: &Path) -> String,
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "orders",
        files: &[
            ("greenroom.yaml", include_str!("init/greenroom.yaml")),
            ("orders.ndjson", include_str!("init/orders.ndjson")),
            WORKER,
        ],
        next: |config, _| format!("next: greenroom run {config}\n"),
    },
    Template {
        name: "http",
        files: &[
            ("greenroom.yaml", include_str!("init/http/greenroom.yaml")),
            ("order.json", include_str!("init/http/order.json")),
            ("orders.ndjson", include_str!("init/http/orders.ndjson")),
            WORKER,
        ],
        next: |config, directory| {
            let file = |name| directory.join(name).display().to_string();
            format!(
                "next: greenroom run {config}\n\
                 and in another terminal: curl -i http://127.0.0.1:8080/events -H 'content-type: \
                 application/cloudevents+json' -d @{}\n\
                 or: greenroom send 127.0.0.1:8080 {}\n",
                file("order.json"),
                file("orders.ndjson")
            )
        },
    },
    Template {
        name: "kafka",
        files: &[
            ("greenroom.yaml", include_str!("init/kafka/greenroom.yaml")),
            ("publish.yaml", include_str!("init/kafka/publish.yaml")),
            ("orders.ndjson", include_str!("init/kafka/orders.ndjson")),
            ("service.py", include_str!("init/kafka/service.py")),
            ("compose.yaml", include_str!("init/kafka/compose.yaml")),
            ("README.md", include_str!("init/kafka/README.md")),
        ],
        next: |config, directory| {
            let file = |name| directory.join(name).display().to_string();
            let install = lacking("kafka").map_or_else(String::new, |install| {
                format!(
                    "this greenroom was built without `kafka`; install one that has it: {install}\n"
                )
            });
            format!(
                "{install}next, with a broker at localhost:9092 ({} says how to get one):\n  \
                 python3 {}\nand in another terminal:\n  greenroom run {}\n  greenroom run {config}\n",
                file("README.md"),
                file("service.py"),
                file("publish.yaml")
            )
        },
    },
];

/// Templates that later versions have.
const LATER: [&str; 1] = ["nats"];

/// Writes the files of a template. Nothing is written when one of them exists, unless `--force` says so.
pub fn init(args: &InitArgs) -> ExitCode {
    let name = args.template.as_str();
    let next = "use `greenroom init orders`, `greenroom init http` or `greenroom init kafka`";
    if LATER.contains(&name) {
        let text = format!("`greenroom init {name}` is not part of this version; {next}");
        return Exit::BadConfiguration.because(text);
    }
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        return Exit::BadConfiguration.because(format!("there is no template `{name}`; {next}"));
    };
    match write_all(template, &args.dir, args.force) {
        Ok(()) => exit::answer(&next_steps(template, &args.dir)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn write_all(template: &Template, directory: &Path, force: bool) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| {
        format!("cannot create the directory `{}`: {error}", directory.display())
    })?;
    let mut paths = template.files.iter().map(|(name, _)| directory.join(name));
    let existing = paths.find(|path| path.exists());
    if let Some(path) = existing.filter(|_| !force) {
        return Err(format!(
            "`{}` exists, and nothing was written; choose another place with `--dir`, or overwrite with `--force`",
            path.display()
        ));
    }
    for (name, content) in template.files {
        let path = directory.join(name);
        write(&path, content, force)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// Without `force` a file that appeared in between is not overwritten either.
fn write(path: &Path, content: &str, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)?.write_all(content.as_bytes())
}

fn next_steps(template: &Template, directory: &Path) -> String {
    let directory = directory.strip_prefix(".").unwrap_or(directory);
    let files: String = template
        .files
        .iter()
        .map(|(name, _)| format!("wrote {}\n", directory.join(name).display()))
        .collect();
    let config = directory.join(template.files[0].0).display().to_string();
    files + &(template.next)(&config, directory)
}
