//! The table of options as a reference page (Markdown).

use std::fmt::Write;

use crate::{
    options::Options,
    schema::{Group, Kind, Opt, Presence},
};

/// The page: an introduction, then the options, as tables. Those that change while the program runs
/// are marked **live**.
pub fn reference<T: Options>(introduction: &str) -> String {
    let mut page = Page { out: introduction.to_owned() };
    page.out.push_str(T::GROUP.doc);
    page.out.push('\n');
    page.group("", T::GROUP);
    page.out
}

struct Page {
    out: String,
}

impl Page {
    // Writing into a String cannot fail.
    fn group(&mut self, path: &str, group: &Group) {
        if group.is_empty() {
            return;
        }
        self.out.push_str("\n| key | takes | default | meaning |\n|---|---|---|---|\n");
        for opt in group.built() {
            let (name, takes, default) = (names(opt), takes(&opt.kind), default(opt, group));
            let (doc, live) =
                (opt.doc.replace('|', "\\|"), if opt.live { " **Live.**" } else { "" });
            let _ = writeln!(self.out, "| {name} | {takes} | {default} | {doc}{live} |");
        }
        self.refused(group);
        for opt in group.built() {
            self.inner(path, opt);
        }
    }

    fn refused(&mut self, group: &Group) {
        let refused: Vec<_> = group.all().filter(|opt| !opt.is_built()).collect();
        if refused.is_empty() {
            return;
        }
        let names: Vec<_> = refused.iter().map(|opt| format!("`{}`", opt.name)).collect();
        let _ = writeln!(self.out, "\nKnown, and refused by this version: {}.", names.join(", "));
    }

    fn inner(&mut self, path: &str, opt: &Opt) {
        let Some((suffix, inner)) = opt.kind.inner() else { return };
        if inner.is_empty() {
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
        Kind::Group(inner) if inner.is_empty() => "`{}`".to_owned(),
        Kind::Group(group) if group.short.is_some() => format!("{}, see below", kind.expected()),
        Kind::Group(_) => "a mapping, see below".to_owned(),
        Kind::Each(_) => "keys, each with a value or a mapping, see below".to_owned(),
        Kind::CountOr { .. } => format!("{}, see below", kind.expected()),
        Kind::List(_) => "a list of mappings, see below".to_owned(),
        Kind::Named(_) => "names, each with a mapping, see below".to_owned(),
        _ => kind.expected(),
    }
}

fn default(opt: &Opt, group: &Group) -> String {
    let only = group.kind_names().len() == 1;
    match opt.presence {
        Presence::Default(text) => format!("`{text}`"),
        Presence::Required => "required".to_owned(),
        Presence::Optional if !group.needs_kind => String::new(),
        Presence::Optional if group.is_kind(opt.name) && only => "required".to_owned(),
        Presence::Optional if group.is_kind(opt.name) => "one of the kinds".to_owned(),
        Presence::Optional | Presence::Inherits(_) => String::new(),
    }
}
