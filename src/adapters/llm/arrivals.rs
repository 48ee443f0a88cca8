//! Remembers across restarts which large answers were being read when the process died, so that a question whose answer kills it repeatedly is
//! not asked again: one file for each in `<data>/answering/`.
//!
//! A file is written before a large answer, or a large piece of a stream, is read. It is removed when the answer was read, or the call ended.
//! Files left by a process that died are counted at the next start. Nothing else depends on them, so they are not synced, and a failed write is
//! only logged.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::domain::moment::Moment;
use crate::domain::question_context::{Line, QuestionContext};
use crate::ports::language_model::{Identity, Request};

/// The name of the folder in the data folder.
const FOLDER: &str = "answering";

/// A question whose answer killed the process this often is not asked again.
pub const DEATHS_TO_FAIL: u32 = 2;

/// How long a death counts. After that the question's messages are too old to be answered, and the same text may be asked about again.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// The most files that are read. There cannot be more than concurrent calls.
const MAX_FILES: usize = 10_000;

/// Identifies a question to a model by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a question.
    pub fn of(request: &Request, identity: &Identity) -> Self {
        let mut hasher = DefaultHasher::new();
        let companion = request.companion.as_ref().map(|companion| companion.id.as_str());
        (&*identity.endpoint, &*identity.model, request.guild.as_str(), companion).hash(&mut hasher);
        (&request.tools, &request.format).hash(&mut hasher);
        match request.extensions.get::<QuestionContext>().filter(|context| !context.newest.is_empty()) {
            // Its text tells the time, which is another one after a restart.
            Some(context) => {
                (request.messages.len(), format!("{:?}", context.purpose)).hash(&mut hasher);
                for Line { from, text } in &context.newest {
                    (&from.id, &from.name, text).hash(&mut hasher);
                }
            }
            None => request.messages.hash(&mut hasher),
        }
        Self(hasher.finish())
    }
}

/// The large answers that are being read, and those that were being read when the process died.
#[derive(Debug)]
pub struct Arrivals {
    folder: PathBuf,
    deaths: Mutex<BTreeMap<Fingerprint, u32>>,
    until: Instant,
}

impl Arrivals {
    /// Reads the files of this data folder; `now` is the wall-clock time.
    pub fn open(data: &Path, now: Moment) -> Arc<Self> {
        let folder = data.join(FOLDER);
        let deaths = read(&folder, now).unwrap_or_else(|error| {
            warn_unwritten(&error);
            BTreeMap::new()
        });
        Arc::new(Self { folder, deaths: Mutex::new(deaths), until: Instant::now() + MAX_AGE })
    }

    /// Whether the answer to this question killed the process so often that it is not asked again.
    pub fn is_fatal(&self, question: Fingerprint) -> bool {
        self.deaths_by(question) >= DEATHS_TO_FAIL
    }

    /// Records that a large answer is being read, until the returned guard is dropped.
    pub async fn begin(self: &Arc<Self>, question: Fingerprint) -> Arriving {
        let (path, deaths) = (self.path(question), self.deaths_by(question) + 1);
        let new_guard = || Arriving { arrivals: self.clone(), question };
        let guard = new_guard();
        // The thread returns the guard. So if the call is cancelled meanwhile, the file is removed after it is written.
        let writing = tokio::task::spawn_blocking(move || {
            if let Err(error) = fs::write(path, deaths.to_string()) {
                warn_unwritten(&error);
            }
            guard
        });
        // This fails only when the runtime shuts down.
        writing.await.unwrap_or_else(|_| new_guard())
    }

    fn deaths_by(&self, question: Fingerprint) -> u32 {
        if Instant::now() >= self.until {
            return 0;
        }
        self.deaths.lock().get(&question).copied().unwrap_or_default()
    }

    fn path(&self, question: Fingerprint) -> PathBuf {
        self.folder.join(format!("{:016x}", question.0))
    }
}

/// A guard: an answer is being read while this exists.
#[derive(Debug)]
pub struct Arriving {
    arrivals: Arc<Arrivals>,
    question: Fingerprint,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arrivals.deaths.lock().remove(&self.question);
        // This runs on the current thread: the process may be about to end, and that must not count as a death.
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
    for file in fs::read_dir(folder)?.take(MAX_FILES) {
        let file = file?;
        let Some(question) = file.file_name().to_str().and_then(|name| u64::from_str_radix(name, 16).ok()) else { continue };
        let written = Moment::ZERO + file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        if now.since(written) > MAX_AGE {
            fs::remove_file(file.path())?;
            continue;
        }
        // A truncated file still stands for one death.
        let died = fs::read_to_string(file.path())?.parse().unwrap_or(1);
        tracing::warn!(deaths = died, question = %file.file_name().display(), "the process died while a model's answer arrived");
        deaths.insert(Fingerprint(question), died);
    }
    Ok(deaths)
}

fn warn_unwritten(error: &io::Error) {
    tracing::warn!(%error, "cannot record which large answers of models are being read; a question whose answer crashes the server may be asked again");
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
        let die_while_reading = async || std::mem::forget(Arrivals::open(data.path(), now).begin(QUESTION).await);

        die_while_reading().await;
        let after_one = Arrivals::open(data.path(), now).is_fatal(QUESTION);
        die_while_reading().await;
        let after_two = Arrivals::open(data.path(), now);
        let an_hour_later = Arrivals::open(data.path(), now + MAX_AGE + Duration::from_secs(60));

        assert!(!after_one);
        assert!(after_two.is_fatal(QUESTION) && !after_two.is_fatal(Fingerprint(8)));
        assert!(!an_hour_later.is_fatal(QUESTION));
        assert_eq!(fs::read_dir(data.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn an_answer_that_was_read_or_cancelled_does_not_count_as_a_death() {
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
    fn invalid_files_are_ignored() {
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
        let fingerprints = others.iter().map(|(request, identity)| Fingerprint::of(request, identity)).chain([one]);
        assert_eq!(fingerprints.collect::<BTreeSet<_>>().len(), others.len() + 1, "all fingerprints differ");
    }
}
