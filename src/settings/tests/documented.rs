//! `docs/companions.md` has every key of a companion's file, and its examples are companions.

use std::collections::BTreeSet;

use crate::companion::{Companion, CompanionFile};
use crate::samples;
use crate::strict;

const PAGE: &str = include_str!("../../../docs/companions.md");

/// The keys that a table of the file knows, as the error about another one lists them.
fn known(wrong: &str, table: &str) -> BTreeSet<String> {
    let wrong = strict::json::<CompanionFile>(wrong.as_bytes()).unwrap().unwrap_err();
    let keys = wrong.detail.split("known keys: ").nth(1).unwrap();
    keys.split(", ").map(|key| format!("{table}{key}")).collect()
}

#[test]
fn every_key_of_a_companion_is_documented() {
    let mut keys = known(r#"{"zzz": 1}"#, "");
    assert!(keys.remove("model") && keys.remove("voice"));
    keys.append(&mut known(r#"{"model": {"zzz": 1}}"#, "[model] "));
    keys.append(&mut known(r#"{"voice": {"zzz": 1}}"#, "[voice] "));

    let table = PAGE.split("\n## ").find(|section| section.starts_with("All keys")).unwrap();
    let documented: BTreeSet<String> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();

    assert_eq!(documented, keys);
}

#[test]
fn the_examples_are_companions() {
    let examples = PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());

    let names = examples.filter(|example| !example.starts_with("[console]")).map(|example| {
        let file: CompanionFile = toml::from_str(example).unwrap_or_else(|error| panic!("{error}: {example}"));
        Companion::from_file(file, Some("example"), &samples::defaults().companion_defaults).unwrap().name.to_string()
    });

    assert_eq!(names.collect::<Vec<_>>(), ["Mira", "Otto", "Lin", "Pip"]);
}
