//! Caches the answers of models in a JSON lines file, so that each question is paid for only once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::domain::question_context::QuestionContext;
use crate::ports::language_model::{AnswerFormat, Identity, Request, TokenUsage};

/// A model's answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The identifier of the question; see [`key`].
    pub question: String,
    /// The text as the model wrote it.
    pub answer: String,
    /// The total number of tokens of all calls for this answer.
    #[serde(flatten)]
    pub usage: TokenUsage,
    /// The model's response time, in milliseconds.
    pub model_ms: u64,
    /// The number of calls, with retries. It is at least 2 if the first answer was unreadable.
    pub calls: u32,
}

/// The cache key of a question: a hash of everything that its answer depends on, that is the model, its sampling and the prompt.
/// Another model, persona or prompt text gives another key.
///
/// `sampling` represents the sampling settings, which the request does not contain.
pub fn key(request: &Request, identity: &Identity, sampling: &str) -> String {
    let mut hash = Context::new(&SHA256);
    let mut add = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    [&*identity.endpoint, &identity.model, sampling, &request.max_tokens.to_string()].into_iter().for_each(&mut add);
    for message in &request.messages {
        add(message.role.as_str());
        add(&message.words());
    }
    if let AnswerFormat::JsonSchema { schema, .. } = &request.format {
        add(&schema.to_string());
    }
    // The answers of `rehearsal` depend on it.
    if let Some(QuestionContext { purpose, .. }) = request.extensions.get::<QuestionContext>() {
        add(&format!("{purpose:?}"));
    }
    let digest = hash.finish();
    digest.as_ref().iter().take(16).fold(String::new(), |mut hex, byte| {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Checks that a path is free or a regular file. The program must not write through a link.
///
/// # Errors
/// Returns an error if the path is a link, a folder or a device, or cannot be examined.
pub fn regular(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is a link or no file")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The known answers, and the file to which new ones are appended.
#[derive(Debug, Default)]
pub struct Answers {
    known: BTreeMap<String, Kept>,
    file: Option<(PathBuf, File)>,
}

impl Answers {
    /// Reads the answers from `answers.jsonl` in a folder, and creates folder and file if necessary.
    ///
    /// # Errors
    /// Returns an error if the folder or the file cannot be used, or if a line is not an answer. An incomplete last line is
    /// removed: a run was killed while it wrote.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join("answers.jsonl");
        let cannot =
            |what: &str, error: &io::Error| format!("{}: cannot be {what}: {error}; name another folder", path.display());
        create_dir_all(folder).map_err(|error| cannot("made", &error))?;
        regular(&path).map_err(|error| cannot("used", &error))?;
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| cannot("read", &error))?,
        };
        let mut known = BTreeMap::new();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let kept: Kept = serde_json::from_str(line).map_err(|error| {
                format!(
                    "{}:{}: is not an answer: {error}; delete the line, and its question is asked again",
                    path.display(),
                    number + 1
                )
            })?;
            known.insert(kept.question.clone(), kept);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| cannot("written", &error))?;
        if whole < text.len() {
            file.set_len(whole as u64).map_err(|error| cannot("written", &error))?;
        }
        Ok(Self { known, file: Some((path, file)) })
    }

    /// The answer to a question, if it is known.
    pub fn of(&self, question: &str) -> Option<&Kept> {
        self.known.get(question)
    }

    /// Adds an answer and appends it to the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn add(&mut self, kept: Kept) -> Result<(), String> {
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(&kept).map_err(io::Error::from).map(|line| line + "\n");
            let written = line.and_then(|line| file.write_all(line.as_bytes()));
            written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))?;
        }
        self.known.insert(kept.question.clone(), kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ports::language_model::{Message, ModelRole};

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "kept\nhalf a line").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("answers.jsonl")).unwrap();

        let refused = Answers::open(folder.path()).unwrap_err();

        assert!(refused.contains("it is a link"), "{refused}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept\nhalf a line");
    }

    #[test]
    fn answers_are_there_in_the_next_run_and_half_a_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let mut answers = Answers::open(&folder).unwrap();
        answers.add(kept("1")).unwrap();
        answers.add(kept("2")).unwrap();
        let file = folder.join("answers.jsonl");
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 5]).unwrap();

        let mut again = Answers::open(&folder).unwrap();
        let known = (again.of("1").cloned(), again.of("2").cloned());
        again.add(kept("3")).unwrap();

        assert_eq!(known, (Some(kept("1")), None));
        let third = Answers::open(&folder).unwrap();
        assert!(third.of("1").is_some() && third.of("3").is_some());
        fs::write(&file, format!("{whole}nonsense\n")).unwrap();
        let refused = Answers::open(&folder).unwrap_err();
        assert!(refused.contains("answers.jsonl:3: is not an answer") && refused.contains("delete the line"), "{refused}");
    }

    #[test]
    fn another_model_prompt_or_sampling_is_another_question() {
        let request = |text: &str| Request {
            messages: Message::prompt("Decide.".to_owned(), text.to_owned()),
            ..Request::new(ModelRole::Side, "g".into(), 50)
        };
        let identity = |model: &str| Identity { provider: "p".into(), model: model.into(), endpoint: "e".into() };

        let keys = [
            key(&request("a"), &identity("m"), ""),
            key(&request("b"), &identity("m"), ""),
            key(&request("a"), &identity("n"), ""),
            key(&request("a"), &identity("m"), "0.5"),
            key(&Request { max_tokens: 60, ..request("a") }, &identity("m"), ""),
        ];

        assert_eq!(keys[0], key(&request("a"), &identity("m"), ""));
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
    }

    fn kept(question: &str) -> Kept {
        let (question, answer) = (question.to_owned(), "YES".to_owned());
        Kept { question, answer, usage: TokenUsage::new(3, 1), model_ms: 5, calls: 1 }
    }
}
