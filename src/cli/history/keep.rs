//! `tertulia history backup|restore|verify|compact`: copies of the store, and whether they are whole.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use super::progress;
use crate::adapters::store::audit::Report;
use crate::adapters::store::backup::{self, Copied};
use crate::adapters::store::sled::{self, SledStore};
use crate::adapters::system::SystemClock;
use crate::cli::asking::report;
use crate::cli::client::{Client, block_on};
use crate::cli::failure::Failure;
use crate::cli::whom::{self, Whom};
use crate::ports::clock::Clock as _;
use crate::ports::house::stamp::rfc3339;
use crate::server::offline::open_options;
use crate::settings::Loaded;

/// Copies everything into one new file.
pub(super) fn backup(loaded: &Loaded, server: Option<&str>, to: &Path, json: bool) -> Result<(), Failure> {
    let copied = match whom::find(loaded, server)? {
        Whom::Server(client) => {
            let to = if client.is_named { on_its_machine(to)? } else { absolute(&file_in(to))? };
            block_on(copy_by(&client, &to))?
        }
        Whom::Store => {
            let data = &loaded.settings.storage.path;
            whom::there_is_one(data)?;
            let to = absolute(&file_in(to))?;
            let bar = progress("copying");
            let copied = SledStore::open(data, &open_options())?.backup(&to, |records| bar.set_position(records));
            bar.finish_and_clear();
            let copied = copied?;
            json!({ "to": to, "entries": copied.records, "bytes": copied.bytes_after })
        }
    };
    let sentence = format!("{}: {} records", copied["to"].as_str().unwrap_or_default(), copied["entries"]);
    report(json, &copied, &sentence)
}

/// Makes a store out of a backup.
pub(super) fn restore(loaded: &Loaded, server: Option<&str>, from: &Path, json: bool) -> Result<(), Failure> {
    let data = &loaded.settings.storage.path;
    whom::only_offline(data, server, "restore")?;
    let bar = progress("restoring");
    let copied = sled::restore(from, data, &open_options(), |records| bar.set_position(records));
    bar.finish_and_clear();
    tell_copy(json, data, &copied?)
}

/// Gives space back.
pub(super) fn compact(loaded: &Loaded, server: Option<&str>, json: bool) -> Result<(), Failure> {
    let data = &loaded.settings.storage.path;
    whom::only_offline(data, server, "compact")?;
    whom::there_is_one(data)?;
    let bar = progress("compacting");
    let copied = sled::compact(data, &open_options(), |records| bar.set_position(records));
    bar.finish_and_clear();
    tell_copy(json, data, &copied?)
}

/// Reads a backup through, or the store.
pub(super) fn verify(loaded: &Loaded, server: Option<&str>, backup: Option<&Path>, json: bool) -> Result<(), Failure> {
    if let Some(backup) = backup {
        let read = read_backup(backup)?;
        return tell_report(json, &backup.display().to_string(), &read);
    }
    let data = &loaded.settings.storage.path;
    let read = match whom::find(loaded, server)? {
        Whom::Server(client) if client.is_named => {
            let detail = "only the server of the data folder can be asked for this; without --server, or verify a backup of it";
            return Err(Failure::Usage(detail.into()));
        }
        Whom::Server(client) => verify_running(&client, data)?,
        Whom::Store => {
            whom::there_is_one(data)?;
            let bar = progress("reading");
            let read = SledStore::open(data, &open_options())?.verify(|records| bar.set_position(records));
            bar.finish_and_clear();
            read.map_err(|error| Failure::Store(error.to_string()))?
        }
    };
    tell_report(json, &data.display().to_string(), &read)
}

/// A running server keeps the store to itself; a copy holds every record of it, and is read through instead.
fn verify_running(client: &Client, data: &Path) -> Result<Report, Failure> {
    let copy = absolute(&data.join(format!("verify-{}.backup", std::process::id())))?;
    block_on(copy_by(client, &copy))?;
    let read = read_backup(&copy);
    std::fs::remove_file(&copy).map_err(|error| Failure::Failed(format!("{}: {error}; delete it", copy.display())))?;
    read
}

fn read_backup(backup: &Path) -> Result<Report, Failure> {
    let bar = progress("reading");
    let read = backup::verify(backup, |records| bar.set_position(records));
    bar.finish_and_clear();
    Ok(read?)
}

async fn copy_by(client: &Client, to: &Path) -> Result<Value, Failure> {
    let to = to.to_str().ok_or_else(|| Failure::Usage(format!("{} is not UTF-8 text, name another", to.display())))?;
    let bar = progress("the server copies");
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let copied = client.object(client.request(Method::POST, "/api/backup", &[]).json(&json!({ "to": to }))).await;
    bar.finish_and_clear();
    copied
}

/// The file itself, or one in the folder that is named for the time.
fn file_in(to: &Path) -> PathBuf {
    if !to.is_dir() {
        return to.to_path_buf();
    }
    let time: String = rfc3339(SystemClock.now()).chars().take_while(|c| *c != '.').filter(|c| !matches!(c, '-' | ':')).collect();
    to.join(format!("tertulia-{time}Z.backup"))
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

fn tell_copy(json: bool, data: &Path, copied: &Copied) -> Result<(), Failure> {
    let Copied { records, bytes_before, bytes_after } = *copied;
    let object = json!({ "folder": data, "entries": records, "bytes_before": bytes_before, "bytes": bytes_after });
    let sentence = format!("{}: {records} records, {bytes_before} bytes before, {bytes_after} now", data.display());
    report(json, &object, &sentence)
}

fn tell_report(json: bool, what: &str, read: &Report) -> Result<(), Failure> {
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    let object = json!({
        "sound": read.is_sound(),
        "entries": read.records,
        "bytes": read.bytes,
        "events": read.events,
        "channels": read.channels,
        "problem_count": read.problem_count,
        "problems": problems,
    });
    let found = format!("{} events of {} channels in {} records", read.events, read.channels, read.records);
    let sentence = if read.is_sound() { format!("{what} is sound: {found}") } else { format!("{what}: {found}") };
    report(json, &object, &sentence)?;
    if read.is_sound() {
        return Ok(());
    }
    let listed = problems.join("\n  ");
    Err(Failure::Failed(format!("{what} is damaged, {} problems were found, the first of them:\n  {listed}", read.problem_count)))
}
