//! Decides whether a new file would be among the files of a store, where it would be mistaken for one of them. Also names and
//! deletes the copies for `tertulia history verify`.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The path of the copy of a running server's store for `tertulia history verify`. It is in the data folder while that command
/// runs.
pub fn for_process(data: &Path, process: u32) -> PathBuf {
    data.join(format!("verify-{process}.backup"))
}

/// Deletes all copies for `tertulia history verify` in a data folder, complete or not. Killed processes leave them.
///
/// # Errors
/// Returns the errors of the file system.
pub fn remove_for_processes(data: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_for_process) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a file's name is one that [`for_process`] gives, or that of its incomplete copy.
fn is_for_process(name: &str) -> bool {
    let Some((process, end)) = name.strip_prefix("verify-").and_then(|name| name.split_once(".backup")) else { return false };
    let number = end.strip_suffix(".part").map(|number| number.strip_prefix('.').unwrap_or(number));
    process.parse::<u32>().is_ok()
        && (end.is_empty() || number.is_some_and(|number| number.is_empty() || number.parse::<u32>().is_ok()))
}

/// Whether a new file of this name would be below a data folder, whatever path leads there: `..`, links and mounts included.
/// False if its folder does not exist, because no file can be created there.
pub fn is_among(data: &Path, to: &Path) -> bool {
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(folder) = fs::canonicalize(folder) else { return false };
    // sled's folder may be elsewhere, behind a link.
    let guarded: Vec<_> = [data.to_path_buf(), data.join("store")].iter().filter_map(identity).collect();
    folder.ancestors().filter_map(identity).any(|ancestor| guarded.contains(&ancestor))
}

fn identity(path: impl AsRef<Path>) -> Option<(u64, u64)> {
    fs::metadata(path).ok().filter(Metadata::is_dir).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn any_path_to_a_file_below_the_data_folder_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let (data, beside) = (folder.path().join("data"), folder.path().join("backups"));
        for made in [&data, &beside, &data.join("store"), &data.join("store/blobs"), &folder.path().join("database")] {
            fs::create_dir(made).unwrap();
        }
        symlink(&data, folder.path().join("link")).unwrap();
        symlink(data.join("store"), beside.join("deep")).unwrap();

        let is_among = |to: &str| is_among(&data, &folder.path().join(to));

        for to in [
            "data/store/snap.00000000FFFFFFFF",
            "data/store/blobs/1",
            "data/manifest.new",
            "data/a.backup",
            "data/verify-17.backup",
            "link/store/a.backup",
            "backups/deep/a.backup",
            "backups/../data/a.backup",
            "data/store/../a.backup",
        ] {
            assert!(is_among(to), "{to}");
        }
        for to in ["backups/a.backup", "data/../a.backup", "database/a.backup", "gone/a.backup"] {
            assert!(!is_among(to), "{to}");
        }
        assert!(!super::is_among(&data, Path::new("a.backup")));
    }

    #[test]
    fn copies_for_processes_that_were_killed_are_deleted_and_nothing_else() {
        let data = tempfile::tempdir().unwrap();
        let left = for_process(data.path(), 17).file_name().unwrap().to_str().unwrap().to_owned();
        let others = ["manifest", "verify-17.backup.txt", "verify-a.backup", "verify-17.backup.a.part", "verify.backup"];
        for name in [&*left, &format!("{left}.part"), &format!("{left}.2.part")].iter().chain(&others) {
            fs::write(data.path().join(name), "").unwrap();
        }

        remove_for_processes(data.path()).unwrap();

        let mut names: Vec<_> = fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["manifest", "verify-17.backup.a.part", "verify-17.backup.txt", "verify-a.backup", "verify.backup"]);
    }

    #[test]
    fn sleds_folder_is_guarded_where_a_link_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (data, fast) = (folder.path().join("data"), folder.path().join("fast"));
        fs::create_dir(&data).unwrap();
        fs::create_dir(&fast).unwrap();
        symlink(&fast, data.join("store")).unwrap();

        assert!(is_among(&data, &fast.join("db.backup")));
    }
}
