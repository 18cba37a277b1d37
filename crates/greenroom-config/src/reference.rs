//! The table of options as a reference page (Markdown).

use std::fmt::Write;

use crate::schema::{Group, Kind, Opt, Presence};

/// The page: the introduction, then the options.
pub fn reference(introduction: &str, root: &Group) -> String {
    let mut page = Page { out: introduction.to_owned() };
    page.out.push_str(root.doc);
    page.out.push('\n');
    page.group("", root);
    page.out
}

struct Page {
    out: String,
}

impl Page {
    // Writing into a String cannot fail.
    fn group(&mut self, path: &str, group: &Group) {
        if group.options.is_empty() {
            return;
        }
        let built: Vec<_> = group.options.iter().filter(|opt| opt.is_built()).collect();
        self.out.push_str("\n| key | takes | default | meaning |\n|---|---|---|---|\n");
        for opt in &built {
            let (name, takes, default) = (names(opt), takes(&opt.kind), default(opt, group));
            let _ = writeln!(
                self.out,
                "| {name} | {takes} | {default} | {} |",
                opt.doc.replace('|', "\\|")
            );
        }
        self.later(group);
        for opt in built {
            self.inner(path, opt);
        }
    }

    fn later(&mut self, group: &Group) {
        let later: Vec<_> = group.options.iter().filter(|opt| !opt.is_built()).collect();
        if later.is_empty() {
            return;
        }
        let names: Vec<_> = later.iter().map(|opt| format!("`{}`", opt.name)).collect();
        let _ = writeln!(self.out, "\nKnown, and refused by this version: {}.", names.join(", "));
    }

    fn inner(&mut self, path: &str, opt: &Opt) {
        let Some((suffix, inner)) = opt.kind.inner() else { return };
        if inner.options.is_empty() {
            return;
        }
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}{suffix}", opt.name);
        let _ = writeln!(self.out, "\n## `{path}`\n\n{}", inner.doc);
        self.group(&path, inner);
    }
}

fn names(opt: &Opt) -> String {
    let aliases: String = opt.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
    format!("`{}`{aliases}", opt.name)
}

fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Group(inner) if inner.options.is_empty() => "`{}`".to_owned(),
        Kind::Group(_) => "a mapping, see below".to_owned(),
        Kind::CountOr { .. } => format!("{}, see below", kind.expected()),
        Kind::List(_) => "a list of mappings, see below".to_owned(),
        Kind::Named(_) => "names, each with a mapping, see below".to_owned(),
        _ => kind.expected(),
    }
}

fn default(opt: &Opt, group: &Group) -> String {
    match opt.presence {
        Presence::Default(text) => format!("`{text}`"),
        Presence::Required => "required".to_owned(),
        Presence::Optional if group.one_of == [opt.name] => "required".to_owned(),
        Presence::Optional if group.one_of.contains(&opt.name) => "one of the kinds".to_owned(),
        Presence::Optional => String::new(),
    }
}
