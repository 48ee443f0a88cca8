//! `tertulia history export`: writes events to standard output or a file.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::check_id;
use crate::adapters::store::backup::CopyError;
use crate::adapters::store::part::{Part, exists_already, unwritten};
use crate::adapters::store::target;
use crate::cli::access::{self, Access};
use crate::cli::client::{Client, block_on};
use crate::cli::command_io::report;
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::domain::text::spaced;
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Person};
use crate::ports::backend::{Backend, DAMAGED};
use crate::server::offline;
use crate::settings::Loaded;
use crate::texts::Language;

/// Writes to standard output, or to a new file that appears only when it is complete.
pub(super) fn run(
    loaded: Loaded,
    server: Option<&str>,
    room: Option<String>,
    guild_and_person: Option<(String, String)>,
    form: ExportForm,
    (out, as_json): (Option<&Path>, bool),
) -> Result<(), Failure> {
    if let Some((guild, person)) = &guild_and_person {
        check_id("--guild", guild)?;
        check_id("--person", person)?;
    }
    let person = guild_and_person.map(|(guild, id)| Person { guild: guild.as_str().into(), id: id.into() });
    let query = person.map_or(Query::Events { room, form }, Query::Messages);
    let access = access::find(&loaded, server)?;
    let mut sink = Sink::open(out, &loaded.settings.storage.path)?;
    sink.copy = (form == ExportForm::Replay).then(Vec::new);
    sink.is_json = matches!(form, ExportForm::Json | ExportForm::Replay | ExportForm::Chat);
    let outcome = match access {
        Access::Server(client) => block_on(from_server(&client, &query, &mut sink)),
        Access::Store => {
            access::require_store(&loaded.settings.storage)?;
            offline::ask(loaded, async |backend: &Backend| from_store(backend, query, &mut sink).await)
                .map_err(Failure::from)
                .flatten()
        }
    };
    match outcome {
        Ok(()) => {
            let notes = notes(sink.copy.as_deref().unwrap_or_default());
            let (lines, bytes) = (sink.lines, sink.bytes);
            sink.finish()?;
            if let Some(path) = out {
                let object = json!({ "file": path.display().to_string(), "lines": lines, "bytes": bytes });
                let what = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
                report(as_json, &object, &format!("wrote {} ({what}, {bytes} bytes)", path.display()))?;
            }
            for note in notes {
                eprintln!("note: {}", visible::line(&note));
            }
            Ok(())
        }
        Err(Failure::Failed(_)) if sink.reader_is_gone => Ok(()),
        // Dropping the sink deletes the partial file.
        Err(failure) => Err(failure),
    }
}

/// The data to export.
enum Query {
    /// The stored events of one room, or of all rooms.
    Events { room: Option<String>, form: ExportForm },
    /// The messages of one person in one guild.
    Messages(Person),
}

async fn from_server(client: &Client, query: &Query, sink: &mut Sink) -> Result<(), Failure> {
    let parameters = match query {
        Query::Events { room, form } => {
            [("as", form.as_str())].into_iter().chain(room.as_ref().map(|room| ("room", room.as_str()))).collect()
        }
        Query::Messages(Person { guild, id }) => vec![("guild", guild.as_str()), ("person", &**id)],
    };
    let response = client.send(client.request(Method::GET, "/api/export", &parameters)).await?;
    let mut chunks = response.bytes_stream();
    // The newest line is held back: if the server aborts the response, this line contains the reason.
    let mut last = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else {
            return Err(aborted(client, &last));
        };
        let searched = last.len().saturating_sub(1);
        last.extend_from_slice(&chunk);
        let end = last.len().saturating_sub(1).max(searched);
        if let Some(at) = last[searched..end].iter().rposition(|byte| *byte == b'\n') {
            let rest = last.split_off(searched + at + 1);
            sink.write(&std::mem::replace(&mut last, rest))?;
        }
    }
    sink.write(&last)
}

async fn from_store(backend: &Backend, query: Query, sink: &mut Sink) -> Result<(), Failure> {
    let mut lines = match query {
        Query::Events { room, form } => {
            let room = match room {
                Some(room) => Some(backend.rooms.find(&room).await?),
                None => None,
            };
            backend.records.export(ExportQuery { room, form, language: Language::default() }).await?
        }
        Query::Messages(person) => backend.records.export_person(person).await?,
    };
    while let Some(line) = lines.next().await {
        sink.write(line?.as_bytes())?;
        sink.write(b"\n")?;
    }
    Ok(())
}

/// The failure for an incomplete response. A server that cannot continue writes the reason as the last line.
fn aborted(client: &Client, last: &[u8]) -> Failure {
    let why: Value = serde_json::from_slice(last).unwrap_or_default();
    if why["type"] == DAMAGED {
        return Failure::Store(spaced(why["detail"].as_str().unwrap_or_default()));
    }
    Failure::Failed(format!(
        "the server at {} aborted the export, so it is incomplete: the server's log says why, and `tertulia history verify` shows whether the \
         store is damaged",
        client.address()
    ))
}

/// The script's notes about differences from the actual events.
fn notes(script: &[u8]) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Notes {
        #[serde(default)]
        notes: Vec<String>,
    }
    serde_json::from_slice::<Notes>(script).unwrap_or_default().notes
}

/// The destination of the lines.
struct Sink {
    out: Box<dyn Write>,
    /// The path of the file, and its partial file. `None` for standard output.
    file: Option<(PathBuf, Part)>,
    /// A copy of the output, if it is parsed at the end.
    copy: Option<Vec<u8>>,
    /// Whether the output is JSON, not text for people.
    is_json: bool,
    lines: u64,
    bytes: u64,
    reader_is_gone: bool,
}

impl Sink {
    fn open(file: Option<&Path>, data: &Path) -> Result<Self, Failure> {
        let Some(path) = file else {
            return Ok(Self::to(BufWriter::new(io::stdout()), None));
        };
        if target::is_among(data, path) {
            let among = CopyError::Among { to: path.to_path_buf(), data: data.to_path_buf() };
            return Err(among.into());
        }
        if path.exists() {
            return Err(Failure::Failed(exists_already(path)));
        }
        let (file, part) = Part::begin(path).map_err(|error| about(path, &error))?;
        Ok(Self::to(BufWriter::new(file), Some((path.to_path_buf(), part))))
    }

    fn to(out: impl Write + 'static, file: Option<(PathBuf, Part)>) -> Self {
        Self { out: Box::new(out), file, copy: None, is_json: true, lines: 0, bytes: 0, reader_is_gone: false }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(bytes);
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.bytes += bytes.len() as u64;
        let written = if self.file.is_some() {
            self.out.write_all(bytes)
        } else {
            self.out.write_all(shown(bytes, self.is_json).as_bytes())
        };
        written.map_err(|error| self.failed(&error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        match self.out.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && self.file.is_none() => return Ok(()),
            outcome => outcome.map_err(|error| self.failed(&error))?,
        }
        let Some((path, part)) = self.file else { return Ok(()) };
        part.finish().map_err(|error| about(&path, &error))
    }

    fn failed(&mut self, error: &io::Error) -> Failure {
        match &self.file {
            Some((path, _)) => about(path, error),
            None => {
                self.reader_is_gone = error.kind() == ErrorKind::BrokenPipe;
                Failure::Failed(format!("standard output: {error}"))
            }
        }
    }
}

/// Escapes terminal control characters. JSON keeps its value. Output to a file is not escaped.
fn shown(written: &[u8], is_json: bool) -> String {
    let written = String::from_utf8_lossy(written);
    if is_json { visible::json(&written) } else { visible::lines(&written) }
}

fn about(path: &Path, error: &io::Error) -> Failure {
    Failure::Failed(unwritten(path, error))
}
