//! Remembers over a restart which large answers were being read when the process died, so that a question whose answer kills it again and again
//! is not asked any more: a file for each in `<data>/answering/`.
//!
//! A file is written before a large answer, or a large piece of a stream, is read, and removed when the answer was read, or given up. What a process that died left
//! there is counted at the next start. Nothing but that depends on it, so nothing is synced, and what cannot be written is told in the log.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::Instant;

use crate::domain::moment::Moment;
use crate::ports::language_model::{Identity, Request};

/// The folder in the data folder.
const FOLDER: &str = "answering";

/// A question whose answer killed the process so often is not asked again.
pub const DEATHS_TO_FAIL: u32 = 2;

/// For so long. By then its messages are too old to be answered; the same words may be asked about again.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// At most so many files are looked at. There are no more than calls under way.
const MOST: usize = 10_000;

/// One question to one model, by what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That of a question.
    pub fn of(request: &Request, identity: &Identity) -> Self {
        let mut hasher = DefaultHasher::new();
        let companion = request.companion.as_ref().map(|companion| companion.id.as_str());
        (&*identity.endpoint, &*identity.model, request.guild.as_str(), companion).hash(&mut hasher);
        (&request.messages, &request.tools, &request.format).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The large answers that are being read, and those that were when the process died.
#[derive(Debug)]
pub struct Arrivals {
    folder: PathBuf,
    deaths: Mutex<BTreeMap<Fingerprint, u32>>,
    until: Instant,
}

impl Arrivals {
    /// Those of this data folder; `now` is the time of day.
    pub fn open(data: &Path, now: Moment) -> Arc<Self> {
        let folder = data.join(FOLDER);
        let deaths = read(&folder, now).unwrap_or_else(|error| {
            warn_unwritten(&error);
            BTreeMap::new()
        });
        Arc::new(Self { folder, deaths: Mutex::new(deaths), until: Instant::now() + KEPT_FOR })
    }

    /// Whether the answer to this question killed the process so often that it is not asked again.
    pub fn is_fatal(&self, question: Fingerprint) -> bool {
        self.deaths_by(question) >= DEATHS_TO_FAIL
    }

    /// Notes that a large answer is read, until what is returned is dropped.
    pub async fn begin(self: &Arc<Self>, question: Fingerprint) -> Arriving {
        let (path, deaths) = (self.path(question), self.deaths_by(question) + 1);
        let arriving = || Arriving { arrivals: self.clone(), question };
        let begun = arriving();
        // It comes back from the thread, so that the note of a call that is cancelled meanwhile is removed once it is written.
        let writing = tokio::task::spawn_blocking(move || {
            if let Err(error) = fs::write(path, deaths.to_string()) {
                warn_unwritten(&error);
            }
            begun
        });
        // It fails only when the runtime ends.
        writing.await.unwrap_or_else(|_| arriving())
    }

    fn deaths_by(&self, question: Fingerprint) -> u32 {
        if Instant::now() >= self.until {
            return 0;
        }
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner).get(&question).copied().unwrap_or_default()
    }

    fn path(&self, question: Fingerprint) -> PathBuf {
        self.folder.join(format!("{:016x}", question.0))
    }
}

/// An answer that is arriving.
#[derive(Debug)]
pub struct Arriving {
    arrivals: Arc<Arrivals>,
    question: Fingerprint,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arrivals.deaths.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.question);
        // Not on a thread of its own: the process may be about to end, and this is no death.
        match fs::remove_file(self.arrivals.path(self.question)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => warn_unwritten(&error),
            _ => {}
        }
    }
}

/// Reads the files and removes the old ones.
fn read(folder: &Path, now: Moment) -> io::Result<BTreeMap<Fingerprint, u32>> {
    fs::create_dir_all(folder)?;
    let mut deaths = BTreeMap::new();
    for file in fs::read_dir(folder)?.take(MOST) {
        let file = file?;
        let Some(question) = file.file_name().to_str().and_then(|name| u64::from_str_radix(name, 16).ok()) else { continue };
        let written = Moment::ZERO + file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        if now.since(written) > KEPT_FOR {
            fs::remove_file(file.path())?;
            continue;
        }
        // One that was cut short tells of one death all the same.
        let died = fs::read_to_string(file.path())?.parse().unwrap_or(1);
        tracing::warn!(deaths = died, question = %file.file_name().display(), "the process died while a model's answer arrived");
        deaths.insert(Fingerprint(question), died);
    }
    Ok(deaths)
}

fn warn_unwritten(error: &io::Error) {
    tracing::warn!(%error, "cannot note which large answers of models are being read; a question whose answer crashes the server may be asked again");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::adapters::system::SystemClock;
    use crate::ports::clock::Clock as _;
    use crate::ports::language_model::{AnswerFormat, Message, ModelRole, Tool};

    const QUESTION: Fingerprint = Fingerprint(7);

    #[tokio::test]
    async fn a_question_whose_answer_killed_the_process_twice_is_fatal_for_an_hour() {
        let data = tempfile::tempdir().unwrap();
        let now = SystemClock.now();
        let dies = async || std::mem::forget(Arrivals::open(data.path(), now).begin(QUESTION).await);

        dies().await;
        let after_one = Arrivals::open(data.path(), now).is_fatal(QUESTION);
        dies().await;
        let after_two = Arrivals::open(data.path(), now);
        let an_hour_later = Arrivals::open(data.path(), now + KEPT_FOR + Duration::from_secs(60));

        assert!(!after_one);
        assert!(after_two.is_fatal(QUESTION) && !after_two.is_fatal(Fingerprint(8)));
        assert!(!an_hour_later.is_fatal(QUESTION));
        assert_eq!(fs::read_dir(data.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn an_answer_that_was_read_or_given_up_is_no_death() {
        let data = tempfile::tempdir().unwrap();
        let now = SystemClock.now();
        let arrivals = Arrivals::open(data.path(), now);
        std::mem::forget(arrivals.begin(QUESTION).await);

        let second = Arrivals::open(data.path(), now);
        drop(second.begin(QUESTION).await);
        std::mem::forget(second.begin(QUESTION).await);

        assert!(!Arrivals::open(data.path(), now).is_fatal(QUESTION));
    }

    #[test]
    fn what_is_no_note_harms_nobody() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join(FOLDER)).unwrap();
        fs::write(data.path().join(FOLDER).join("0000000000000007"), "").unwrap();
        fs::write(data.path().join(FOLDER).join("notes"), "2").unwrap();

        let arrivals = Arrivals::open(data.path(), SystemClock.now());

        assert_eq!(arrivals.deaths_by(QUESTION), 1);
    }

    #[test]
    fn another_question_has_another_fingerprint() {
        let identity = |model: &str| Identity { provider: "p".into(), model: model.into(), endpoint: "http://here".into() };
        let request = |guild: &str, user: &str| Request {
            guild: guild.into(),
            messages: Message::prompt("s".to_owned(), user.to_owned()),
            ..Request::new(ModelRole::Side, "home".into(), 1)
        };
        let schema = |schema| AnswerFormat::JsonSchema { name: "vote".to_owned(), schema };
        let tool = |parameters| Tool { name: "dice".to_owned(), description: "Rolls.".to_owned(), parameters };
        let with = |tools: Vec<Tool>, format| Request { tools, format, ..request("home", "hi") };
        let one = Fingerprint::of(&request("home", "hi"), &identity("m"));

        assert_eq!(one, Fingerprint::of(&request("home", "hi"), &identity("m")));
        let others = [
            (request("away", "hi"), identity("m")),
            (request("home", "ho"), identity("m")),
            (request("home", "hi"), identity("n")),
            (with(vec![tool(json!({}))], AnswerFormat::Text), identity("m")),
            (with(vec![tool(json!({ "sides": 6 }))], AnswerFormat::Text), identity("m")),
            (with(Vec::new(), AnswerFormat::JsonObject), identity("m")),
            (with(Vec::new(), schema(json!({}))), identity("m")),
            (with(Vec::new(), schema(json!({ "type": "object" }))), identity("m")),
        ];
        let known = others.iter().map(|(request, identity)| Fingerprint::of(request, identity)).chain([one]);
        assert_eq!(known.collect::<BTreeSet<_>>().len(), others.len() + 1, "each is another");
    }
}
