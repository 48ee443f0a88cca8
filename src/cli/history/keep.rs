//! `tertulia history backup|restore|verify|compact`: copies of the store, and whether they are whole.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use super::progress;
use crate::adapters::store::audit::Report;
use crate::adapters::store::backup::{self, Copied, CopyError};
use crate::adapters::store::sled::{self, SledStore};
use crate::adapters::store::target;
use crate::adapters::system::SystemClock;
use crate::cli::asking::{print_json, report};
use crate::cli::client::{Client, block_on};
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::cli::whom::{self, Whom};
use crate::journal::erased;
use crate::journal::inspection::Inspection;
use crate::journal::salvaged::Salvaged;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::ports::store::maintenance::is_backup_name;
use crate::server::holds_a_store;
use crate::server::offline::open_options;
use crate::settings::Loaded;

/// What to do about a damaged store.
const WAYS_OUT: &str = "Put a backup back with `tertulia history restore`, or copy the folder and keep what can be read with \
    `tertulia history compact --accept-loss`.";

/// What to do about records that are whole, and do not read as what they should be.
const ILLEGIBLE_WAYS_OUT: &str = "What is whole and cannot be read as what it should be: restore an earlier backup with `tertulia history restore`. \
    `tertulia serve --accept-loss`, once, makes anew what follows from other records: names and numbers of channels, how far they go, the number that \
    comes next, who said what, ids of messages that still have their words. Anything else stays as it is: a room that needs it is left alone \
    (GET /api/quarantine) and can be deleted (DELETE /api/rooms/ROOM), and the rest goes on; but a room whose number, end or mark of deletion cannot be \
    read takes nothing in and cannot be deleted, and a record of which rooms there are, of who lives where, or of the number that comes next, keeps \
    the server from starting. If it is of a newer format, start the version that wrote it.";

/// What to do about a backup that holds such records.
const ILLEGIBLE_IN_A_BACKUP: &str = "What is whole and cannot be read as what it should be was so in the store when this was taken: another one from \
    now has it, too. `tertulia history restore` puts it back as it is; rather take one from before.";

/// Copies everything into one new file.
pub(super) fn backup(loaded: &Loaded, server: Option<&str>, to: &Path, json: bool) -> Result<(), Failure> {
    let copied = match whom::find(loaded, server)? {
        Whom::Server(client) => {
            let to = if client.is_named { on_its_machine(to)? } else { file_in(to)? };
            block_on(copy_by(&client, &to))?
        }
        Whom::Store => {
            let data = &loaded.settings.storage.path;
            whom::there_is_one(data)?;
            let to = file_in(to)?;
            let bar = progress("copying");
            let copied = SledStore::open(data, &open_options())?.backup(&to, |records| bar.set_position(records));
            bar.finish_and_clear();
            let copied = copied?;
            json!({ "to": to, "entries": copied.records, "bytes": copied.bytes_after })
        }
    };
    let sentence = format!("{}: {} records", visible::line(copied["to"].as_str().unwrap_or_default()), copied["entries"]);
    report(json, &copied, &sentence)
}

/// Makes a store out of a backup.
pub(super) fn restore(loaded: &Loaded, from: &Path, json: bool) -> Result<(), Failure> {
    let data = &loaded.settings.storage.path;
    whom::only_offline(data, "restore")?;
    there_is_a_backup(from, "restore")?;
    let bar = progress("restoring");
    let restored = sled::restore(from, data, &open_options(), Inspection, |records| bar.set_position(records));
    bar.finish_and_clear();
    let (copied, read) = restored?;
    if !read.is_sound() {
        let from = visible::path(from);
        let warning = format!("{from} is damaged, and is restored as it is: {}\n{ILLEGIBLE_WAYS_OUT}", found(&read));
        eprintln!("tertulia: {}", visible::paragraph(&warning));
    }
    let object = json!({ "problem_count": read.problem_count, "problems": problems(&read) });
    tell_copy(json, data, &copied, object)
}

/// Gives space back; where a loss is accepted, by what can be read.
pub(super) fn compact(loaded: &Loaded, accept_loss: bool, json: bool) -> Result<(), Failure> {
    let data = &loaded.settings.storage.path;
    whom::only_offline(data, "compact")?;
    whom::there_is_one(data)?;
    let bar = progress("compacting");
    let copied = if accept_loss {
        sled::salvage(data, &open_options(), &mut Salvaged::default(), |records| bar.set_position(records))
    } else {
        sled::compact(data, &open_options(), erased::is_mark, |records| bar.set_position(records))
    };
    bar.finish_and_clear();
    tell_copy(json, data, &copied?, json!({}))
}

/// Reads a backup through, or the store.
pub(super) fn verify(loaded: &Loaded, backup: Option<&Path>, json: bool) -> Result<(), Failure> {
    if let Some(backup) = backup {
        there_is_a_backup(backup, "verify")?;
        let what = visible::path(backup);
        return match read_backup(backup) {
            Ok(read) => tell_report(json, &what, &read, "Take another one.", ILLEGIBLE_IN_A_BACKUP),
            // As far as it could be read it says nothing about the rest.
            Err(CopyError::Unusable { detail, .. }) => tell_unusable(json, &what, &detail),
            Err(error) => Err(error.into()),
        };
    }
    let data = &loaded.settings.storage.path;
    let read = match whom::find(loaded, None)? {
        Whom::Server(client) => verify_running(&client, data, json)?,
        Whom::Store => {
            whom::there_is_one(data)?;
            let store = SledStore::open(data, &open_options()).or_else(|error| {
                if error.is_damage() {
                    tell_unsound(json, &error.to_string())?;
                }
                Err(Failure::from(error))
            })?;
            let bar = progress("reading");
            let read = store.verify(Inspection, |records| bar.set_position(records));
            bar.finish_and_clear();
            read.map_err(|error| Failure::Store(error.to_string()))?
        }
    };
    tell_report(json, &visible::path(data), &read, WAYS_OUT, ILLEGIBLE_WAYS_OUT)
}

/// A running server keeps the store to itself; a copy holds every record of it, and is read through instead.
fn verify_running(client: &Client, data: &Path, json: bool) -> Result<Report, Failure> {
    let process = std::process::id();
    block_on(copy_as_asked(client, &json!({ "verified_by": process }))).or_else(|failure| match failure {
        // It is damaged, and a copy ends at the first place that cannot be read.
        Failure::Store(detail) => {
            let detail = format!("{detail}; with the server stopped, `tertulia history verify` goes on beyond it, if the store can be opened at all");
            tell_unsound(json, &detail)?;
            Err(Failure::Store(detail))
        }
        failure => Err(failure),
    })?;
    let copy = absolute(&target::for_process(data, process))?;
    let read = read_backup(&copy);
    std::fs::remove_file(&copy).map_err(|error| Failure::Failed(format!("{}: {error}; delete it", copy.display())))?;
    Ok(read?)
}

/// Makes sure that a backup is a file that is there.
fn there_is_a_backup(named: &Path, command: &str) -> Result<(), Failure> {
    let shown = named.display();
    if named.is_dir() {
        let way_out = match command {
            "verify" if holds_a_store(named) => format!(
                "it is a data folder; `tertulia history verify` alone reads the store of storage.path, and with TERTULIA__STORAGE__PATH={shown} this one"
            ),
            _ => "name one of the backups in it, a file that ends in .backup".to_owned(),
        };
        return Err(Failure::Usage(format!("{shown} is a folder, and a backup is a file: {way_out}")));
    }
    match named.try_exists() {
        Ok(false) => Err(Failure::Failed(format!("there is no backup {shown}: name a file that `tertulia history backup` made"))),
        Ok(true) => Ok(()),
        Err(error) => Err(Failure::Failed(format!("{shown} cannot be read: {error}"))),
    }
}

fn read_backup(backup: &Path) -> Result<Report, CopyError> {
    let bar = progress("reading");
    let read = backup::verify(backup, Inspection, |records| bar.set_position(records));
    bar.finish_and_clear();
    read
}

async fn copy_by(client: &Client, to: &Path) -> Result<Value, Failure> {
    let to = to.to_str().ok_or_else(|| Failure::Usage(format!("{} is not UTF-8 text, name another", to.display())))?;
    copy_as_asked(client, &json!({ "to": to })).await
}

async fn copy_as_asked(client: &Client, asked: &Value) -> Result<Value, Failure> {
    let bar = progress("the server copies");
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let copied = client.object(client.request(Method::POST, "/api/backup", &[]).json(asked)).await;
    bar.finish_and_clear();
    copied.map_err(|failure| match failure {
        // Here nobody named a field; the path stands in what is said of it.
        Failure::Usage(detail) => Failure::Usage(detail.strip_prefix("to: ").unwrap_or(&detail).to_owned()),
        failure => failure,
    })
}

/// The file itself, or a new one in the folder that is named for the time, by its whole path.
fn file_in(to: &Path) -> Result<PathBuf, Failure> {
    let to = absolute(to)?;
    if to.is_dir() {
        let time: String =
            rfc3339(SystemClock.now()).chars().take_while(|c| *c != '.').filter(|c| !matches!(c, '-' | ':')).collect();
        let names = std::iter::once(String::new()).chain((2..).map(|again| format!("-{again}")));
        let mut files = names.map(|again| to.join(format!("tertulia-{time}Z{again}.backup")));
        return files.find(|file| !file.exists()).ok_or_else(|| Failure::Failed(format!("{} is full of backups", to.display())));
    }
    if !is_backup_name(&to) {
        let to = to.display();
        return Err(Failure::Usage(format!(
            "there is no folder {to}: make it first, or name a new file, whose name has to end in .backup"
        )));
    }
    match to.parent() {
        Some(folder) if folder.exists() && !folder.is_dir() => {
            Err(Failure::Failed(format!("{} is not a folder: name another", folder.display())))
        }
        Some(folder) if !folder.is_dir() => {
            Err(Failure::Failed(format!("there is no folder {}: make it first", folder.display())))
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
    Err(Failure::Usage(format!("{to}: with --server, name the whole path of a new file on the server's machine")))
}

/// Tells of a copy; `object` gets what is told of every copy besides what it has.
fn tell_copy(json: bool, data: &Path, copied: &Copied, mut object: Value) -> Result<(), Failure> {
    let Copied { records, bytes_before, bytes_after, holes } = *copied;
    object["folder"] = json!(data);
    for (name, value) in [("entries", records), ("bytes_before", bytes_before), ("bytes", bytes_after), ("left_out", holes)] {
        object[name] = value.into();
    }
    let left_out = match holes {
        0 => String::new(),
        1 => "; 1 place could not be read and was left out".to_owned(),
        _ => format!("; {holes} places could not be read and were left out"),
    };
    let sentence =
        format!("{}: {records} records, {bytes_before} bytes before, {bytes_after} now{left_out}", visible::path(data));
    report(json, &object, &sentence)
}

/// A backup that is none, or that is damaged, so that nothing of it can be relied on.
fn tell_unusable(json: bool, what: &str, detail: &str) -> Result<(), Failure> {
    tell_unsound(json, detail)?;
    Err(Failure::Failed(format!("{what} is not a backup that can be used: {detail}")))
}

/// Something of which no more is known than that it is damaged.
fn tell_unsound(json: bool, detail: &str) -> Result<(), Failure> {
    if json { print_json(&json!({ "sound": false, "problem_count": 1, "problems": [detail] })) } else { Ok(()) }
}

/// What is wrong, each thing in one line: guilds and channels are called as whoever made them wanted it.
fn problems(read: &Report) -> Vec<String> {
    read.problems.iter().map(|problem| visible::line(&problem.to_string())).collect()
}

/// The same in a sentence, and the lines below it.
fn found(read: &Report) -> String {
    let (count, kept) = (read.problem_count, read.problems.len() as u64);
    let which = if count > kept { format!(", the first {kept} of them") } else { String::new() };
    let found = if count == 1 { "1 problem was".to_owned() } else { format!("{count} problems were") };
    format!("{found} found{which}:\n  {}", problems(read).join("\n  "))
}

fn tell_report(json: bool, what: &str, read: &Report, ways_out: &str, of_illegible: &str) -> Result<(), Failure> {
    let object = json!({
        "sound": read.is_sound(),
        "entries": read.records,
        "bytes": read.bytes,
        "events": read.events,
        "channels": read.channels,
        "problem_count": read.problem_count,
        "problems": problems(read),
    });
    let counted = |count: u64, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let [events, channels, records] =
        [(read.events, "event"), (read.channels, "channel"), (read.records, "record")].map(|(count, one)| counted(count, one));
    let counts = format!("{events} of {channels} in {records}");
    let sentence = if read.is_sound() { format!("{what} is sound: {counts}") } else { format!("{what}: {counts}") };
    report(json, &object, &sentence)?;
    if read.is_sound() {
        return Ok(());
    }
    let is_more_than_illegible = read.problem_count > read.illegible;
    let ways_out = [(is_more_than_illegible, ways_out), (read.illegible > 0, of_illegible)];
    let ways_out: Vec<_> = ways_out.into_iter().filter_map(|(is_there, way_out)| is_there.then_some(way_out)).collect();
    Err(Failure::Failed(format!("{what} is damaged, {}\n{}", found(read), ways_out.join("\n"))))
}
