use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

fn files(files: &[(&str, &str)]) -> (TempDir, CompanionFiles) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("config/companions");
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (dir, CompanionFiles::new(folder))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let (dir, files) = files(&[("other.toml", "")]);
    let (mira, id) = (files.folder().join("mira.toml"), "mira".into());
    let target = dir.path().join("real.toml");
    fs::write(&target, "# old\n").unwrap();
    symlink("../../link.toml", &mira).unwrap();
    symlink("real.toml", dir.path().join("link.toml")).unwrap();
    let found = files.find(&id).unwrap().unwrap();

    files.write(&id, Some(&found), "# new\n").unwrap();

    assert!(mira.is_symlink());
    assert_eq!(
        (fs::read_to_string(&target).unwrap().as_str(), names(files.folder())),
        ("# new\n", vec!["mira.toml".to_owned(), "other.toml".to_owned()])
    );
    // Only the link is removed.
    files.move_away(&id, &found).unwrap().unwrap().delete();
    assert!(target.exists() && names(files.folder()) == ["other.toml"]);
}

#[test]
fn who_may_read_a_file_stays() {
    let (_dir, files) = files(&[("mira.toml", "")]);
    let (path, id) = (files.folder().join("mira.toml"), "mira".into());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let found = files.find(&id).unwrap();

    files.write(&id, found.as_ref(), "# new\n").unwrap();

    assert_eq!(mode(&path), 0o640);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    assert!(!files.is_writable(found.as_ref()) && files.is_writable(None));
    let error = files.write(&id, found.as_ref(), "# newer\n").unwrap_err();
    assert!(is_unwritable(&error), "{error}");
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(files.folder())), ("# new\n", vec!["mira.toml".to_owned()]));
}

#[test]
fn what_a_killed_server_left_is_replaced() {
    let (_dir, files) = files(&[("mira.toml", ""), (".mira.toml.new", "half")]);
    let id = "mira".into();

    files.write(&id, files.find(&id).unwrap().as_ref(), "# new\n").unwrap();

    assert_eq!(names(files.folder()), ["mira.toml"]);
}

#[test]
fn the_folder_is_made_as_a_whole_or_not_at_all() {
    let (dir, files) = files(&[]);
    let id = "mira".into();
    let failing = files.clone().writing_with(|path, text| match path.ends_with("mira.toml") {
        true => Err(ErrorKind::StorageFull.into()),
        false => fs::write(path, text),
    });

    assert!(failing.write(&id, None, "").is_err());
    assert!(names(dir.path()).is_empty());
    files.write(&id, None, "# mine\n").unwrap();
    assert_eq!(names(files.folder()), ["aria.toml", "bruno.toml", "cleo.toml", "mira.toml"]);
    assert_eq!(names(files.folder().parent().unwrap()), ["companions"]);
    let aria = "aria".into();
    let found = files.find(&aria).unwrap().unwrap();
    assert_eq!((found.form, found.text.as_str()), (Form::File, BUILT_IN[0].1));
}

#[test]
fn a_changed_built_in_companion_is_written_once() {
    let (_dir, files) = files(&[]);
    let aria = "aria".into();
    let found = files.find(&aria).unwrap();
    assert_eq!(found.as_ref().map(|found| found.form), Some(Form::BuiltIn));

    files.write(&aria, found.as_ref(), "# mine\n").unwrap();

    assert_eq!(fs::read_to_string(files.path_of(&aria)).unwrap(), "# mine\n");
    assert_eq!(names(files.folder()), ["aria.toml", "bruno.toml", "cleo.toml"]);
}

#[test]
fn files_that_were_moved_away_can_be_put_back() {
    let (_dir, files) = files(&[("mira/companion.toml", "# x"), ("mira/a.md", "A poet.")]);
    let id = "mira".into();
    let found = files.find(&id).unwrap().unwrap();

    let moved = files.move_away(&id, &found).unwrap().unwrap();
    assert_eq!(files.find(&id).unwrap(), None);
    moved.put_back();

    assert_eq!(files.find(&id).unwrap(), Some(found));
}

#[test]
fn a_path_below_a_file_is_not_writable() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config"), "a file").unwrap();
    let error = fs::write(dir.path().join("config/companions"), "").unwrap_err();

    assert!(is_unwritable(&error), "{error}");
    assert!(!is_unwritable(&ErrorKind::StorageFull.into()));
}

#[test]
fn a_name_is_taken_by_anything_in_any_case() {
    let (_dir, files) = files(&[("Mira.toml", ""), ("NOVA/x.txt", ""), ("readme.md", "")]);

    assert_eq!(["mira", "nova", "readme", "toml"].map(|name| files.has(name)), [true, true, false, false]);
}
