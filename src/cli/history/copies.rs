//! `tertulia history backup|restore|verify|compact`: copies of the store, and checks for damage.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{progress, records};
use crate::adapters::store::OpenError;
use crate::adapters::store::audit::Report;
use crate::adapters::store::backup::{self, Copied, CopyError};
use crate::adapters::store::sled::{self, OpenOptions, SledStore};
use crate::adapters::store::target;
use crate::adapters::system::SystemClock;
use crate::cli::access::{self, Access};
use crate::cli::client::{Client, block_on};
use crate::cli::command_io::{print, print_json, report};
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::journal::erased;
use crate::journal::inspection::Inspection;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::ports::store::maintenance::is_backup_name;
use crate::server::offline::open_options;
use crate::server::{holds_a_store, newest_backup, with_newest_backup};
use crate::settings::Loaded;

/// Advice for a damaged store.
const REMEDY: &str = "Restore a backup with `tertulia history restore`, or copy the folder and continue with what is left with `tertulia serve --accept-loss`.";

/// Advice for missing names of channels, and for records that are intact but cannot be parsed.
const UNREADABLE_REMEDY: &str = "For records that cannot be read: restore an earlier backup with `tertulia history restore`. Otherwise they stay \
    as they are. A room that needs one is suspended (GET /api/quarantine) and can be deleted (DELETE /api/rooms/ROOM); other rooms continue. But a \
    room whose number, last event or mark of deletion is unreadable accepts no messages and cannot be deleted. An unreadable list of rooms, \
    membership or next channel number keeps the server from starting. If the format is newer than this version, start the version that wrote it.";

/// The data that a replacement server needs besides a backup.
const NOT_IN_A_BACKUP: &str = "A backup holds what was said and decided, the rooms and their members, the pictures and cards of companions, and the \
    companions that are kept in the store. It does not hold the settings, the companions' files, the admin token, Discord's token, the keys of models, \
    and a model that was connected on the page: copy the folder of the settings, set the tokens, and connect the model again.";

/// The backup tools of PostgreSQL.
const ITS_BACKUPS: &str = "make backups with its own tools, pg_dump, or pg_basebackup with archived WAL";

/// Advice for a backup that contains records that cannot be parsed.
const UNREADABLE_IN_A_BACKUP: &str = "The records that are intact but cannot be parsed were the same in the store when this backup was taken, and a \
    new backup would contain them too. `tertulia history restore` restores them as they are; prefer an earlier backup.";

/// Copies the whole store into one new file.
pub(super) fn backup(loaded: &Loaded, server: Option<&str>, to: &Path, json: bool) -> Result<(), Failure> {
    if server.is_none() {
        access::require_disk(&loaded.settings.storage, "backup", ITS_BACKUPS)?;
    }
    let copied = match access::find(loaded, server)? {
        Access::Server(client) => {
            let to = if client.is_named { on_its_machine(to)? } else { file_in(to)? };
            let copied = block_on(copy_by_server(&client, &to))?;
            if !client.is_named && !to.exists() {
                return Err(Failure::Failed(format!(
                    "the server says that it has written {}, but there is no such file here: its service may have a /tmp of its own; name a folder that \
                     you both see, such as /var/backups/tertulia",
                    to.display()
                )));
            }
            copied
        }
        Access::Store => {
            let data = &loaded.settings.storage.path;
            access::require_store(&loaded.settings.storage)?;
            let to = file_in(to)?;
            let store = SledStore::open(data, &open_options()).map_err(|error| unusable(&error, data))?;
            let copied = store.backup(&to, records("copying"))?;
            json!({ "to": to, "entries": copied.records, "bytes": copied.bytes_after })
        }
    };
    let sentence = format!("{}: {} records", visible::line(copied["to"].as_str().unwrap_or_default()), copied["entries"]);
    report(json, &copied, &sentence)
}

/// Creates a store from a backup.
pub(super) fn restore(loaded: &Loaded, from: &Path, json: bool) -> Result<(), Failure> {
    let instead =
        "restore with pg_restore, or restore this backup with storage.engine = \"sled\" and then use `tertulia history copy`";
    access::require_disk(&loaded.settings.storage, "restore", instead)?;
    let data = &loaded.settings.storage.path;
    access::require_offline(data, "restore")?;
    require_backup(from, "restore")?;
    let (copied, read) = sled::restore(from, data, &open_options(), Inspection, records("restoring"))?;
    if !read.is_sound() {
        let from = visible::path(from);
        let warning = format!("{from} is damaged, and is restored as it is: {}\n{UNREADABLE_REMEDY}", found(&read));
        eprintln!("tertulia: {}", visible::paragraph(&warning));
    }
    let object = json!({ "problem_count": read.problem_count, "problems": problems(&read) });
    report_copy(json, data, &copied, object)?;
    if !json {
        print(&NOT_IN_A_BACKUP)?;
    }
    Ok(())
}

/// Frees disk space.
pub(super) fn compact(loaded: &Loaded, accept_loss: bool, json: bool) -> Result<(), Failure> {
    access::require_disk(&loaded.settings.storage, "compact", "it frees the space of deleted rows itself (autovacuum)")?;
    let data = &loaded.settings.storage.path;
    access::require_offline(data, "compact")?;
    access::require_store(&loaded.settings.storage)?;
    let options = OpenOptions { accept_loss, ..open_options() };
    let copied =
        sled::compact(data, &options, Inspection, erased::is_mark, records("compacting")).map_err(|error| match error {
            CopyError::Open(error) => unusable(&error, data),
            error => error.into(),
        })?;
    report_copy(json, data, &copied, json!({}))
}

/// Reads the whole store, or a whole backup, and reports damage.
pub(super) fn verify(loaded: &Loaded, backup: Option<&Path>, json: bool) -> Result<(), Failure> {
    if let Some(backup) = backup {
        require_backup(backup, "verify")?;
        let what = visible::path(backup);
        return match read_backup(backup) {
            Ok(read) => report_findings(json, &what, &read, "Take a new backup.", UNREADABLE_IN_A_BACKUP),
            // The readable part says nothing about the rest.
            Err(CopyError::Unusable { detail, .. }) => report_unusable(json, &what, &detail),
            Err(error) => Err(error.into()),
        };
    }
    let instead = "it checks its pages itself, if data checksums are on; pg_amcheck reads all of them";
    access::require_disk(&loaded.settings.storage, "verify", instead)?;
    let data = &loaded.settings.storage.path;
    let read = match access::find(loaded, None)? {
        Access::Server(client) => verify_running(&client, data, json)?,
        Access::Store => {
            access::require_store(&loaded.settings.storage)?;
            let store = SledStore::open(data, &open_options()).or_else(|error| {
                let detail = with_newest_backup(&error, data);
                if error.is_damage() {
                    report_damage(json, &detail)?;
                }
                Err(Failure::Store(detail))
            })?;
            store.verify(Inspection, records("reading")).or_else(|error| {
                let detail = format!("{error}; {}", newest_backup(data));
                report_damage(json, &detail)?;
                Err(Failure::Store(detail))
            })?
        }
    };
    let remedy = format!("{REMEDY} ({})", newest_backup(data));
    report_findings(json, &visible::path(data), &read, &remedy, UNREADABLE_REMEDY)
}

/// Verifies a copy made by the running server, which holds the lock of the store. The copy contains every record.
fn verify_running(client: &Client, data: &Path, json: bool) -> Result<Report, Failure> {
    let process = std::process::id();
    let copy = absolute(&target::for_process(data, process))?;
    block_on(async {
        let connection = connection_with_copy(client, process).await.or_else(|failure| match failure {
            // The store is damaged, and the copy ends at the first unreadable place.
            Failure::Store(detail) => {
                report_damage(json, &detail)?;
                Err(Failure::Store(detail))
            }
            failure => Err(failure),
        })?;
        // This blocks the runtime, which has no other task.
        let read = read_backup(&copy);
        // The server deletes the copy when the connection ends. Deleting it here ensures that it is gone when the command ends.
        let _ = std::fs::remove_file(&copy);
        drop(connection);
        Ok(read?)
    })
}

/// Requests a copy for this process. The server deletes the copy when the connection ends for any reason.
async fn connection_with_copy(client: &Client, process: u32) -> Result<Response, Failure> {
    let bar = copying();
    let request = client.request(Method::POST, "/api/backup", &[]).json(&json!({ "verified_by": process }));
    let mut response = client.send(request).await?;
    // The copy is complete when its line arrives. The body stays open.
    if response.chunk().await.map_err(|error| client.broken(&error))?.is_none() {
        return Err(Failure::Failed("the server stopped before the copy was complete: try again".into()));
    }
    drop(bar);
    Ok(response)
}

fn copying() -> ProgressBar {
    let bar = progress("the server copies");
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// Fails unless the backup is an existing file.
fn require_backup(named: &Path, command: &str) -> Result<(), Failure> {
    let shown = named.display();
    if named.is_dir() {
        let remedy = match command {
            "verify" if holds_a_store(named) => format!(
                "it is a data folder; `tertulia history verify` without BACKUP reads the store at storage.path; set TERTULIA__STORAGE__PATH={shown} \
                 to read this one"
            ),
            _ => "name one of the backups in it, a file that ends in .backup".to_owned(),
        };
        return Err(Failure::Usage(format!("{shown} is a folder, and a backup is a file: {remedy}")));
    }
    match named.try_exists() {
        Ok(false) => Err(Failure::Failed(format!("there is no backup {shown}: name a file that `tertulia history backup` made"))),
        Ok(true) => Ok(()),
        Err(error) => Err(Failure::Failed(format!("{shown} cannot be read: {error}"))),
    }
}

fn read_backup(backup: &Path) -> Result<Report, CopyError> {
    backup::verify(backup, Inspection, records("reading"))
}

async fn copy_by_server(client: &Client, to: &Path) -> Result<Value, Failure> {
    let to = to.to_str().ok_or_else(|| Failure::Usage(format!("{} is not UTF-8 text: use another name", to.display())))?;
    request_copy(client, &json!({ "to": to })).await
}

async fn request_copy(client: &Client, request: &Value) -> Result<Value, Failure> {
    let bar = copying();
    let copied = client.object(client.request(Method::POST, "/api/backup", &[]).json(request)).await;
    drop(bar);
    copied.map_err(|failure| match failure {
        // The user gave no field `to`, and the message names the path anyway.
        Failure::Usage(detail) => Failure::Usage(detail.strip_prefix("to: ").unwrap_or(&detail).to_owned()),
        failure => failure,
    })
}

/// The absolute path of the backup: the file itself, or in a folder a new file named after the current time.
fn file_in(to: &Path) -> Result<PathBuf, Failure> {
    let to = absolute(to)?;
    if to.is_dir() {
        let time: String =
            rfc3339(SystemClock.now()).chars().take_while(|c| *c != '.').filter(|c| !matches!(c, '-' | ':')).collect();
        let suffixes = std::iter::once(String::new()).chain((2..).map(|number| format!("-{number}")));
        let mut files = suffixes.map(|suffix| to.join(format!("tertulia-{time}Z{suffix}.backup")));
        return files.find(|file| !file.exists()).ok_or_else(|| Failure::Failed(format!("{} is full of backups", to.display())));
    }
    if !is_backup_name(&to) {
        let to = to.display();
        return Err(Failure::Usage(format!(
            "there is no folder {to}: create it first, or name a new file whose name ends in .backup"
        )));
    }
    match to.parent() {
        Some(folder) if folder.exists() && !folder.is_dir() => {
            Err(Failure::Failed(format!("{} is not a folder: name another", folder.display())))
        }
        Some(folder) if !folder.is_dir() => {
            Err(Failure::Failed(format!("there is no folder {}: create it first", folder.display())))
        }
        _ => Ok(to),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

fn on_its_machine(to: &Path) -> Result<PathBuf, Failure> {
    if to.is_absolute() {
        return Ok(to.to_path_buf());
    }
    let to = to.display();
    Err(Failure::Usage(format!("{to}: with --server, give the absolute path of a new file on the server's machine")))
}

fn unusable(error: &OpenError, data: &Path) -> Failure {
    Failure::Store(with_newest_backup(error, data))
}

/// Reports a copy. Adds the common fields of all copies to `object`.
fn report_copy(json: bool, data: &Path, copied: &Copied, mut object: Value) -> Result<(), Failure> {
    let Copied { records, bytes_before, bytes_after } = *copied;
    object["folder"] = json!(data);
    for (name, value) in [("entries", records), ("bytes_before", bytes_before), ("bytes", bytes_after)] {
        object[name] = value.into();
    }
    let sentence = format!("{}: {records} records, {bytes_before} bytes before, {bytes_after} now", visible::path(data));
    report(json, &object, &sentence)
}

/// Reports a file that is not a backup, or is too damaged to rely on.
fn report_unusable(json: bool, what: &str, detail: &str) -> Result<(), Failure> {
    report_damage(json, detail)?;
    Err(Failure::Failed(format!("{what} is not a backup that can be used: {detail}")))
}

/// With `--json`, prints damage that made the rest unreadable. Otherwise does nothing.
fn report_damage(json: bool, detail: &str) -> Result<(), Failure> {
    if json { print_json(&json!({ "sound": false, "problem_count": 1, "problems": [detail] })) } else { Ok(()) }
}

/// The problems, one line each. Names of guilds and channels in them are escaped.
fn problems(read: &Report) -> Vec<String> {
    read.problems.iter().map(|problem| visible::line(&problem.to_string())).collect()
}

/// The number of problems, and the problems on the following lines.
fn found(read: &Report) -> String {
    let (count, listed) = (read.problem_count, read.problems.len() as u64);
    let which = if count > listed { format!(", the first {listed} of them") } else { String::new() };
    let found = if count == 1 { "1 problem was".to_owned() } else { format!("{count} problems were") };
    format!("{found} found{which}:\n  {}", problems(read).join("\n  "))
}

fn report_findings(json: bool, what: &str, read: &Report, remedy: &str, unreadable_remedy: &str) -> Result<(), Failure> {
    let object = json!({
        "sound": read.is_sound(),
        "entries": read.records,
        "bytes": read.bytes,
        "events": read.events,
        "channels": read.channels,
        "problem_count": read.problem_count,
        "problems": problems(read),
    });
    let counted = |count: u64, noun: &str| if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") };
    let [events, channels, records] =
        [(read.events, "event"), (read.channels, "channel"), (read.records, "record")].map(|(count, noun)| counted(count, noun));
    let counts = format!("{events} of {channels} in {records}");
    let sentence = if read.is_sound() { format!("{what} is sound: {counts}") } else { format!("{what}: {counts}") };
    report(json, &object, &sentence)?;
    if read.is_sound() {
        return Ok(());
    }
    let has_other_problems = read.problem_count > read.illegible;
    let remedies = [(has_other_problems, remedy), (read.illegible > 0, unreadable_remedy)];
    let remedies: Vec<_> = remedies.into_iter().filter_map(|(applies, remedy)| applies.then_some(remedy)).collect();
    Err(Failure::Failed(format!("{what} is damaged, {}\n{}", found(read), remedies.join("\n"))))
}
