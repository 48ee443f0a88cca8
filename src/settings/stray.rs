//! Finds files that look like settings or companions but are not read, so that none is ignored silently.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The prefixes of names that only settings files have.
const NAMES_OF_SETTINGS: [&str; 4] = ["default", "config", "settings", "tertulia"];

/// A note for each file in the settings folder that looks like a settings file but is not read.
pub(super) fn settings_notes(folder: &Path, profile: Option<&str>) -> Vec<String> {
    let read = [Some("default"), profile].map(|name| name.map(|name| format!("{name}.toml")));
    let is_meant = |path: &PathBuf| {
        let Some(name) = path.file_name().and_then(OsStr::to_str).filter(|name| !name.starts_with('.')) else { return false };
        let lower = name.to_lowercase();
        let stem = lower.split('.').next().unwrap_or_default();
        let is_named = NAMES_OF_SETTINGS.contains(&stem) || profile.is_some_and(|profile| profile.to_lowercase() == stem);
        let has_other_ending = lower.contains(".toml") && !name.ends_with(".toml");
        path.is_file() && (is_named || has_other_ending) && !read.iter().flatten().any(|read| read == name)
    };
    notes(
        files_in(folder).into_iter().filter(is_meant),
        "settings are read from default.toml, and from NAME.toml with --profile NAME",
    )
}

/// A note for each of these paths that is a file. Files for people, such as a README, are left out.
pub(super) fn companion_notes<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    let is_note = |path: &Path| path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    let files = paths.into_iter().filter(|path| path.is_file() && !is_note(path)).map(Path::to_owned);
    notes(
        files,
        "a companion is a file NAME.toml, or a folder NAME with companion.toml and its persona in files *.md, there or in memory/self",
    )
}

fn notes(paths: impl Iterator<Item = PathBuf>, rule: &str) -> Vec<String> {
    let mut paths: Vec<_> = paths.map(|path| path.display().to_string().escape_debug().to_string()).collect();
    paths.sort();
    paths.into_iter().map(|path| format!("{path} is not read: {rule}")).collect()
}

/// The files of a folder. Empty if the folder cannot be listed: the attempt to read it reports why.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    entries.unwrap_or_default()
}
