//! Checks of a declaration that the compiler cannot make.

use std::collections::HashSet;

use super::{Group, Opt, decoder};
use crate::problem::Problems;

impl Group {
    /// The mistakes in the declaration and everything within it: a spelling that two options share,
    /// a documentation that does not end like a sentence, a default that its option does not
    /// accept. For a test: it must be empty.
    pub fn mistakes(&'static self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut spellings = HashSet::new();
        if self.short.is_some() && self.short().is_none() {
            mistakes.push(format!("{} has no key {:?}", self.title, self.short));
        }
        for opt in self.all() {
            let twice = opt.spellings().into_iter().filter(|name| !spellings.insert(name.clone()));
            mistakes.extend(twice.map(|name| format!("{} has `{name}` twice", self.title)));
            if opt.is_built() {
                mistakes.extend(mistakes_of(opt).map(|why| format!("{}: {why}", self.title)));
            }
            mistakes.extend(opt.kind.inner().into_iter().flat_map(|(_, inner)| inner.mistakes()));
        }
        mistakes
    }
}

fn mistakes_of(opt: &'static Opt) -> impl Iterator<Item = String> {
    let name = opt.name;
    let undocumented = (!opt.doc.ends_with('.'))
        .then(|| format!("the documentation of `{name}` is not a sentence"));
    let mut problems = Problems::default();
    if let Some(text) = opt.left_out() {
        decoder::left_out(opt, text, &mut problems);
    }
    let wrong = (problems.errors() > 0).then(|| format!("the default of `{name}`: {problems}"));
    undocumented.into_iter().chain(wrong)
}
