//! `tertulia history export`: reads out what happened.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{Form, check_id};
use crate::adapters::store::backup::CopyError;
use crate::adapters::store::part::{Part, exists_already, unwritten};
use crate::adapters::store::target;
use crate::cli::client::{Client, block_on, one_line};
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::cli::whom::{self, Whom};
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Person};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Backend, DAMAGED};
use crate::server::offline;
use crate::settings::Loaded;

/// Reads out to standard output, or into a new file that is there once it is whole.
pub(super) fn run(
    loaded: Loaded,
    server: Option<&str>,
    room: Option<String>,
    of: Option<(String, String)>,
    form: Form,
    out: Option<&Path>,
) -> Result<(), Failure> {
    let room = room.map(|room| RoomId::parse(&room).ok_or_else(|| no_room_id(&room))).transpose()?;
    let form = if form == Form::Replay { ExportForm::Replay } else { ExportForm::Json };
    if let Some((guild, person)) = &of {
        check_id("--guild", guild)?;
        check_id("--person", person)?;
    }
    let person = of.map(|(guild, id)| Person { guild: guild.as_str().into(), id: id.into() });
    let query = person.map_or(Query::Kept(ExportQuery { room, form }), Query::Said);
    let whom = whom::find(&loaded, server)?;
    let mut sink = Sink::open(out, &loaded.settings.storage.path)?;
    sink.copy = (form == ExportForm::Replay).then(Vec::new);
    let outcome = match whom {
        Whom::Server(client) => block_on(from_server(&client, &query, &mut sink)),
        Whom::Store => {
            whom::there_is_one(&loaded.settings.storage.path)?;
            offline::ask(loaded, async |backend: &dyn Backend| from_store(backend, query, &mut sink).await)
                .map_err(Failure::from)
                .flatten()
        }
    };
    match outcome {
        Ok(()) => {
            let notes = notes(sink.copy.as_deref().unwrap_or_default());
            sink.finish()?;
            for note in notes {
                eprintln!("note: {}", visible::line(&note));
            }
            Ok(())
        }
        Err(Failure::Failed(_)) if sink.reader_is_gone => Ok(()),
        Err(failure) => {
            // With the sink goes what was written.
            Err(failure)
        }
    }
}

/// What is read out.
enum Query {
    /// What is kept.
    Kept(ExportQuery),
    /// What somebody said.
    Said(Person),
}

async fn from_server(client: &Client, query: &Query, sink: &mut Sink) -> Result<(), Failure> {
    let asked = match query {
        Query::Kept(ExportQuery { room, form }) => {
            let form = ("as", if *form == ExportForm::Replay { "replay" } else { "json" });
            [form].into_iter().chain(room.as_ref().map(|room| ("room", room.as_str()))).collect()
        }
        Query::Said(Person { guild, id }) => vec![("guild", guild.as_str()), ("person", &**id)],
    };
    let response = client.send(client.request(Method::GET, "/api/export", &asked)).await?;
    let mut pieces = response.bytes_stream();
    // The line that was read last: where the server breaks off it says why.
    let mut last = Vec::new();
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else {
            return Err(broken_off(client, &last));
        };
        let known = last.len().saturating_sub(1);
        last.extend_from_slice(&piece);
        let end = last.len().saturating_sub(1).max(known);
        if let Some(at) = last[known..end].iter().rposition(|byte| *byte == b'\n') {
            let rest = last.split_off(known + at + 1);
            sink.write(&std::mem::replace(&mut last, rest))?;
        }
    }
    sink.write(&last)
}

async fn from_store(backend: &dyn Backend, query: Query, sink: &mut Sink) -> Result<(), Failure> {
    let mut lines = match query {
        Query::Kept(query) => backend.export(query).await?,
        Query::Said(person) => backend.export_person(person).await?,
    };
    while let Some(line) = lines.next().await {
        sink.write(line?.as_bytes())?;
        sink.write(b"\n")?;
    }
    Ok(())
}

/// A server that cannot read on ends the answer in the middle, after a line that says why.
fn broken_off(client: &Client, last: &[u8]) -> Failure {
    let why: Value = serde_json::from_slice(last).unwrap_or_default();
    if why["type"] == DAMAGED {
        return Failure::Store(one_line(why["detail"].as_str().unwrap_or_default()));
    }
    Failure::Failed(format!(
        "the server at {} broke off, so this is not whole: its log says why, and `tertulia history verify` whether the store is damaged",
        client.address()
    ))
}

/// What a script says that it does not tell as it was.
fn notes(script: &[u8]) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Noted {
        #[serde(default)]
        notes: Vec<String>,
    }
    serde_json::from_slice::<Noted>(script).unwrap_or_default().notes
}

fn no_room_id(room: &str) -> Failure {
    Failure::Usage(format!(
        "--room {room:?} is no room's id: 1 to 64 letters, digits, _ or -, or a channel's id like discord:1234"
    ))
}

/// Where the lines go.
struct Sink {
    out: Box<dyn Write>,
    /// The file, and what is written of it so far.
    file: Option<(PathBuf, Part)>,
    /// What was written so far, if somebody looks at it in the end.
    copy: Option<Vec<u8>>,
    reader_is_gone: bool,
}

impl Sink {
    fn open(file: Option<&Path>, data: &Path) -> Result<Self, Failure> {
        let Some(path) = file else {
            return Ok(Self { out: Box::new(BufWriter::new(io::stdout())), file: None, copy: None, reader_is_gone: false });
        };
        if target::is_among(data, path) {
            let among = CopyError::Among { to: path.to_path_buf(), data: data.to_path_buf() };
            return Err(among.into());
        }
        if path.exists() {
            return Err(Failure::Failed(exists_already(path)));
        }
        let (file, part) = Part::begin(path).map_err(|error| about(path, &error))?;
        Ok(Self {
            out: Box::new(BufWriter::new(file)),
            file: Some((path.to_path_buf(), part)),
            copy: None,
            reader_is_gone: false,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(bytes);
        }
        let written = if self.file.is_some() { self.out.write_all(bytes) } else { self.out.write_all(&shown(bytes)) };
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

/// JSON that says the same and moves no terminal. In a file it stays as it is.
fn shown(json: &[u8]) -> Vec<u8> {
    visible::json(&String::from_utf8_lossy(json)).into_bytes()
}

fn about(path: &Path, error: &io::Error) -> Failure {
    Failure::Failed(unwritten(path, error))
}
