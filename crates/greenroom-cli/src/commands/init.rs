//! `greenroom init`: a configuration to start from, with data and a worker, that runs as it is.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use crate::{
    cli::InitArgs,
    exit::{self, Exit},
};

/// What `orders` consists of: name and content.
const ORDERS: [(&str, &str); 3] = [
    ("greenroom.yaml", include_str!("init/greenroom.yaml")),
    ("orders.ndjson", include_str!("init/orders.ndjson")),
    ("worker.py", include_str!("init/worker.py")),
];

/// Templates that later versions have.
const LATER: [&str; 3] = ["http", "kafka", "nats"];

/// Writes the files of a template. Nothing is written when one of them exists, unless `--force` says so.
pub fn init(args: &InitArgs) -> ExitCode {
    let template = args.template.as_str();
    if LATER.contains(&template) {
        let text = format!(
            "`greenroom init {template}` is not part of this version; use `greenroom init orders`"
        );
        return Exit::BadConfiguration.because(text);
    }
    if template != "orders" {
        let text = format!("there is no template `{template}`; use `greenroom init orders`");
        return Exit::BadConfiguration.because(text);
    }
    match write_all(&args.dir, args.force) {
        Ok(()) => exit::answer(&next_steps(&args.dir)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn write_all(directory: &Path, force: bool) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| {
        format!("cannot create the directory `{}`: {error}", directory.display())
    })?;
    let existing = ORDERS.iter().map(|(name, _)| directory.join(name)).find(|path| path.exists());
    if let Some(path) = existing.filter(|_| !force) {
        return Err(format!(
            "`{}` exists, and nothing was written; choose another place with `--dir`, or overwrite with `--force`",
            path.display()
        ));
    }
    for (name, content) in ORDERS {
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

fn next_steps(directory: &Path) -> String {
    let directory = directory.strip_prefix(".").unwrap_or(directory);
    let files: String = ORDERS
        .iter()
        .map(|(name, _)| format!("wrote {}\n", directory.join(name).display()))
        .collect();
    let config = directory.join(ORDERS[0].0);
    format!("{files}next: greenroom run {}\n", config.display())
}
