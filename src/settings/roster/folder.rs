//! A companion's folder: `companion.toml`, and persona files (`*.md`, also in `memory/self`) that together form its persona.

use std::fs;
use std::path::{Path, PathBuf};

use super::CardFiles;
use crate::companion::MAX_PERSONA_BYTES;
use crate::load::{is_there, read_text};
use crate::problem::Located;

/// The folder of persona files within a companion's folder in Familiar-Connect.
const SELF: &str = "memory/self";
/// The file with the companion's keys.
pub(super) const KEYS: &str = "companion.toml";
/// The maximum number of persona files in a folder.
const MAX_PERSONA_FILES: usize = 64;

/// Whether a file or folder is hidden: its name begins with a dot.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a path is the folder of a companion: it contains `companion.toml` or a persona file. Links are followed. Broken links
/// and folders that cannot be listed count, so that they are reported.
pub(super) fn is_companion(path: &Path) -> bool {
    let is_broken_link = path.is_symlink() && !path.exists();
    let has_persona_files = || persona_files(path).map_or(true, |files| !files.is_empty());
    is_broken_link || (path.is_dir() && (is_there(&path.join(KEYS)) || has_persona_files()))
}

/// The files of a companion's folder.
pub(super) fn card(folder: &Path) -> CardFiles {
    let keys = folder.join(KEYS);
    let text = if is_there(&keys) {
        read_text(&keys)
    } else {
        Err(format!(
            "does not exist, but its folder has persona files (*.md); create it, it may be empty, or rename the folder to .{}",
            name(folder)
        ))
    };
    CardFiles { file: keys.display().to_string(), text, persona: persona(folder).transpose() }
}

/// The text of the persona files in byte order of their names, separated by empty lines. `None`: the folder has none.
fn persona(folder: &Path) -> Result<Option<String>, Vec<Located>> {
    let here = |message: String| vec![Located::at(folder.display().to_string(), message)];
    let files = persona_files(folder).map_err(|error| here(format!("cannot be read: {error}")))?;
    if files.len() > MAX_PERSONA_FILES {
        return Err(here(format!("has {} persona files (*.md), at most {MAX_PERSONA_FILES} are allowed", files.len())));
    }
    let (mut texts, mut problems) = (Vec::new(), Vec::new());
    for file in &files {
        match read_text(file) {
            Ok(text) => texts.push(text.trim().to_owned()),
            Err(message) => problems.push(Located::at(file.display().to_string(), message)),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    texts.retain(|text| !text.is_empty());
    let persona = texts.join("\n\n");
    if persona.len() > MAX_PERSONA_BYTES {
        let bytes = persona.len();
        return Err(here(format!("has {bytes} bytes of persona files (*.md) together, at most {MAX_PERSONA_BYTES} are allowed")));
    }
    Ok((!files.is_empty()).then_some(persona))
}

/// The files `*.md` of a folder, followed by those of its `memory/self`, each in byte order of their names. Hidden files are left
/// out.
pub(super) fn persona_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_persona = |path: &PathBuf| !is_hidden(path) && path.extension().is_some_and(|extension| extension == "md");
    let below = folder.join(SELF);
    let mut files = Vec::new();
    for folder in [folder, &below] {
        if folder == below && !is_there(&below) {
            break;
        }
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        let mut found: Vec<_> = paths.into_iter().filter(is_persona).collect();
        found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        files.append(&mut found);
    }
    Ok(files)
}

fn name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
