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

const TEMPLATES: [Template; 5] = [
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
            let publish = format!("greenroom run {}", file("publish.yaml"));
            with_a_broker(directory, ("kafka", "localhost:9092"), &publish, config)
        },
    },
    Template {
        name: "nats",
        files: &[
            ("greenroom.yaml", include_str!("init/nats/greenroom.yaml")),
            ("publish.py", include_str!("init/nats/publish.py")),
            ("orders.ndjson", include_str!("init/nats/orders.ndjson")),
            ("service.py", include_str!("init/nats/service.py")),
            ("compose.yaml", include_str!("init/nats/compose.yaml")),
            ("README.md", include_str!("init/nats/README.md")),
        ],
        next: |config, directory| {
            let publish = format!("python3 {}", directory.join("publish.py").display());
            with_a_broker(directory, ("nats", "localhost:4222"), &publish, config)
        },
    },
    Template {
        name: "redis",
        files: &[
            ("greenroom.yaml", include_str!("init/redis/greenroom.yaml")),
            ("publish.py", include_str!("init/redis/publish.py")),
            ("orders.ndjson", include_str!("init/nats/orders.ndjson")),
            ("service.py", include_str!("init/nats/service.py")),
            ("compose.yaml", include_str!("init/redis/compose.yaml")),
            ("README.md", include_str!("init/redis/README.md")),
        ],
        next: |config, directory| {
            let publish = format!("python3 {}", directory.join("publish.py").display());
            with_a_broker(directory, ("redis", "localhost:6379"), &publish, config)
        },
    },
];

/// What to do next where a broker is needed, and a greenroom with this feature.
fn with_a_broker(
    directory: &Path,
    (feature, at): (&str, &str),
    publish: &str,
    config: &str,
) -> String {
    let file = |name| directory.join(name).display().to_string();
    let install = lacking(feature).map_or_else(String::new, |install| install + "\n");
    format!(
        "{install}next, with a broker at {at} ({} says how to get one):\n  python3 {}\n\
         and in another terminal:\n  {publish}\n  greenroom run {config}\n",
        file("README.md"),
        file("service.py"),
    )
}

/// Writes the files of a template. Nothing is written when one of them exists,
/// unless `--force` says so.
pub fn init(args: &InitArgs) -> ExitCode {
    let name = args.template.as_str();
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        let names = TEMPLATES.map(|template| format!("`greenroom init {}`", template.name));
        let names = names.join(", ");
        let text = format!("there is no template `{name}`; use one of {names}");
        return Exit::BadConfiguration.because(text);
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
