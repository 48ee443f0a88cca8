//! Finds problems of files other than their syntax: files with secrets and a data folder that too many users of this machine can
//! read, and quotation marks around secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Settings;
use super::secret::{unquoted, without_mark};

/// The mode bit that lets all users read a file.
const BY_ALL: u32 = 0o004;

/// The mode bits that let users other than the owner use a folder.
const BY_OTHERS: u32 = 0o077;

/// The largest file with a secret that is checked, in bytes.
const MOST_BYTES: u64 = 64 * 1024;

/// One note for each such file, with the remedy. Missing and unreadable files are reported elsewhere.
pub(super) fn notes(settings: &Settings) -> Vec<String> {
    let secrets = secret_files(settings).flat_map(|(key, path)| {
        let exposed = is_open(path, BY_ALL).then(|| {
            format!("{key}: everybody on this machine can read {path}; protect it with chmod o= {path}", path = path.display())
        });
        let quoted = is_quoted(path).then(|| {
            format!("{key}: the quotation marks around the secret in {} do not count; remove them from the file", path.display())
        });
        exposed.into_iter().chain(quoted)
    });
    let data = &settings.storage.path;
    let data = is_open(data, BY_OTHERS).then(|| {
        let path = data.display();
        format!("storage.path: other users of this machine can access {path}, which contains all histories; protect it with chmod 700 {path}")
    });
    secrets.chain(data).collect()
}

/// The files with secrets that are examined, each with its key.
fn secret_files(settings: &Settings) -> impl Iterator<Item = (String, &Path)> {
    let models = &settings.models;
    let secrets = [
        ("server.admin_token_file".to_owned(), settings.server.admin_token_file.as_deref()),
        ("discord.token_file".to_owned(), settings.discord.token_file.as_deref()),
        ("storage.url_file".to_owned(), settings.storage.url_file.as_deref()),
        ("models.side.api_key_file".to_owned(), models.side.api_key_file.as_deref()),
        ("models.main.api_key_file".to_owned(), models.main.api_key_file.as_deref()),
        ("models.moderation.api_key_file".to_owned(), models.moderation.as_ref().and_then(|model| model.api_key_file.as_deref())),
        ("cluster.secret_file".to_owned(), settings.cluster.secret_file.as_deref()),
    ];
    let named = models.named.iter().map(|(name, model)| (format!("models.{name}.api_key_file"), model.api_key_file.as_deref()));
    let services = settings.speech.services.iter();
    let services = services.map(|(name, table)| (format!("speech.services.{name}.api_key_file"), table.api_key_file.as_deref()));
    let tools = settings.tools.servers.iter();
    let tools = tools.map(|(name, server)| (format!("tools.servers.{name}.token_file"), server.token_file.as_deref()));
    secrets.into_iter().chain(named).chain(services).chain(tools).filter_map(|(key, path)| Some((key, path?)))
}

/// Whether a file contains a secret in quotation marks. Files that are not regular are not read, because they may be readable
/// only once.
fn is_quoted(path: &Path) -> bool {
    let is_small_file = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
    let text = is_small_file.then(|| std::fs::read_to_string(path).ok()).flatten();
    text.is_some_and(|text| unquoted(without_mark(&text)).is_some())
}

fn is_open(path: &Path, bits: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & bits != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use secrecy::ExposeSecret as _;
    use serde_json::json;

    use super::*;

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_secret_that_everybody_can_read_is_noted_and_a_protected_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [admin, bot, key] = ["admin", "bot", "key"].map(|name| folder.path().join(name));
        for (path, mode) in [(&admin, 0o644), (&bot, 0o640), (&key, 0o604)] {
            fs::write(path, "hidden-words").unwrap();
            with_mode(path, mode);
        }
        let mut settings = Settings::overlay(json!({})).unwrap();
        settings.storage.path = folder.path().join("none");
        settings.server.admin_token_file = Some(admin.clone());
        settings.discord.token_file = Some(bot);
        settings.models.main.api_key_file = Some(key);

        let notes = notes(&settings);

        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].starts_with("server.admin_token_file: ") && notes[0].ends_with(&format!("chmod o= {}", admin.display()))
        );
        assert!(notes[1].starts_with("models.main.api_key_file: "));
        assert!(notes.iter().all(|note| !note.contains("hidden-words")));
    }

    #[test]
    fn quotation_marks_around_a_secret_in_a_file_are_noted() {
        let folder = tempfile::tempdir().unwrap();
        let [quoted, bare] = ["quoted", "bare"].map(|name| folder.path().join(name));
        for (path, text) in [(&quoted, "\"hidden-words\"\r\n"), (&bare, "hidden-words")] {
            fs::write(path, text).unwrap();
            with_mode(path, 0o600);
        }
        let mut settings = Settings::overlay(json!({})).unwrap();
        settings.storage.path = folder.path().join("none");
        settings.models.main.api_key_file = Some(quoted.clone());
        settings.models.side.api_key_file = Some(bare);

        let expected = format!(
            "models.main.api_key_file: the quotation marks around the secret in {} do not count; remove them from the file",
            quoted.display()
        );
        assert_eq!(notes(&settings), [expected]);
        assert_eq!(settings.models.main.key().unwrap().unwrap().expose_secret(), "hidden-words");
    }

    #[test]
    fn a_data_folder_that_others_can_access_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::overlay(json!({})).unwrap();
        settings.storage.path = folder.path().to_owned();

        let counts = [0o700, 0o750, 0o701, 0o777].map(|mode| {
            with_mode(folder.path(), mode);
            notes(&settings).len()
        });

        assert_eq!(counts, [0, 1, 1, 1]);
    }
}
