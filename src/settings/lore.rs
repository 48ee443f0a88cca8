//! Lorebooks in files: `lore/*.md` beside the folder of companions, each with a head of TOML between two lines `+++` and one entry's text below.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::problem::Located;
use crate::domain::lore::{Book, Entry, Shelved};

/// The keys of the head besides those of an entry.
const OWNERS: [&str; 2] = ["companions", "rooms"];
/// The line before and after the head.
const FENCE: &str = "+++";
/// The maximum number of files.
const MAX_FILES: usize = 500;

/// A lorebook of one entry, by the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookFile {
    pub path: PathBuf,
    pub stem: Arc<str>,
    pub shelved: Shelved,
}

/// Reads the files of a folder, which need not exist, with `read_text`. Files with problems are left out.
pub(super) fn read(
    folder: &Path,
    read_text: impl Fn(&Path) -> Result<String, String>,
    problems: &mut Vec<Located>,
) -> Vec<BookFile> {
    if !folder.exists() {
        return Vec::new();
    }
    let paths =
        match fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>()) {
            Ok(paths) => paths,
            Err(error) => {
                problems.push(Located::at(folder.display().to_string(), format!("cannot be read: {error}")));
                return Vec::new();
            }
        };
    let mut paths: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.sort();
    if paths.len() > MAX_FILES {
        let message = format!("has {} files *.md, at most {MAX_FILES} are allowed", paths.len());
        problems.push(Located::at(folder.display().to_string(), message));
        paths.truncate(MAX_FILES);
    }
    let mut files = Vec::new();
    for path in paths {
        let stem: Arc<str> = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default().into();
        match read_text(&path).and_then(|text| parse(&stem, &text)) {
            Ok(shelved) => files.push(BookFile { path, stem, shelved }),
            Err(message) => problems.push(Located::at(path.display().to_string(), message)),
        }
    }
    files
}

fn parse(stem: &str, text: &str) -> Result<Shelved, String> {
    let plain = text.replace("\r\n", "\n");
    let head = plain.strip_prefix(FENCE).and_then(|rest| rest.split_once(&format!("\n{FENCE}\n")));
    let (head, content) =
        head.ok_or("must begin with a head: a line +++, keys such as keys = [\"mill\"], and another line +++; the text follows")?;
    let mut head: toml::Table =
        head.parse().map_err(|error: toml::de::Error| format!("has a wrong head: {}", error.message()))?;
    let known = toml::Table::try_from(Entry { priority: Some(0), scan_depth: Some(1), ..Entry::default() }).unwrap_or_default();
    let allowed = || known.keys().map(String::as_str).chain(OWNERS).filter(|key| *key != "content");
    if let Some(unknown) = head.keys().find(|key| !allowed().any(|allowed| allowed == *key)) {
        let allowed = allowed().collect::<Vec<_>>().join(", ");
        return Err(format!("has the unknown key {unknown}; the keys of the head are {allowed}"));
    }
    let mut owners = |key: &str| match head.remove(key) {
        Some(value) => {
            value.try_into().map_err(|error: toml::de::Error| format!("{key}: {}; give a list of ids", error.message()))
        }
        None => Ok(Default::default()),
    };
    let (companions, rooms) = (owners("companions")?, owners("rooms")?);
    let mut entry: Entry = head.try_into().map_err(|error: toml::de::Error| format!("has a wrong head: {}", error.message()))?;
    entry.content = content.trim().into();
    let book = Book { name: stem.into(), entries: vec![entry], ..Book::default() };
    book.check().map_err(|problem| problem.to_string())?;
    Ok(Shelved { book, companions, rooms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_an_entry_and_its_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("mill.md", "+++\r\nkeys = [\"mill\"]\r\nrooms = [\"lobby\"]\r\n+++\r\nIt burned down.\r\n");
        write("typo.md", "+++\nkey = [\"mill\"]\n+++\nx\n");
        write("plain.md", "no head");
        write("notes.txt", "not read");

        let mut problems = Vec::new();
        let text = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
        let files = read(folder.path(), text, &mut problems);

        let [mill] = &files[..] else { panic!("{files:?}") };
        let entry = &mill.shelved.book.entries[0];
        assert_eq!((&*mill.stem, &*entry.keys[0], &*entry.content), ("mill", "mill", "It burned down."));
        assert_eq!(mill.shelved.rooms, ["lobby".into()].into());
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(
            told[0].contains("plain.md: must begin with a head") && told[1].contains("typo.md: has the unknown key key;"),
            "{told:?}"
        );
        assert!(read(&folder.path().join("none"), text, &mut problems).is_empty() && problems.len() == 2);
    }
}
