//! Reads recorded group chat from JSON lines files, plain or gzipped, with one excerpt per line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::domain::named::named;

/// A part of a conversation.
#[derive(Clone, Debug, Deserialize)]
pub struct Excerpt {
    pub id: Arc<str>,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The authors that are companions already, including silent ones. `None` if any author may take the companion's role.
    pub companions: Option<Vec<Arc<str>>>,
    /// The label that replaces the truth if people did not annotate the excerpt.
    #[serde(default)]
    pub label: Label,
}

/// A message of an excerpt.
#[derive(Clone, Debug, Deserialize)]
pub struct Message {
    /// The index in the excerpt.
    pub n: usize,
    /// The time since the first message of the excerpt, in seconds.
    pub t: f64,
    pub from: Arc<str>,
    pub text: Arc<str>,
    /// The indices of the earlier messages to which it replies. They include messages by the same author.
    pub replies_to: Vec<usize>,
    /// Whether its reply links are known. Messages that are not annotated are only context.
    pub annotated: bool,
}

named! {
    /// The criterion for a reply.
    #[derive(Default, clap::ValueEnum)]
    pub enum Label {
        /// A later message of the companion links to the message.
        #[default]
        Reply = "reply",
        /// The companion is the next to speak, the author of the message aside, within 60 seconds.
        #[value(name = "turn_60s")]
        Turn60s = "turn_60s",
    }
}

impl Label {
    /// An explanation for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Reply => "a later message of the companion replies to the message, by the links in the file",
            Self::Turn60s => {
                "the companion was the next to speak within 60 seconds: there are few reply links, so this stands for a reply"
            }
        }
    }
}

/// The maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 256 * 1024 * 1024;
/// The maximum time of a message, in seconds: about thirty years.
const LATEST_SECS: f64 = 1e9;

/// Reads the excerpts of these files.
///
/// # Errors
/// Returns an error if a file cannot be read or a line is not a valid excerpt. The text names the file, the line and the remedy.
pub fn read(files: &[impl AsRef<Path>]) -> Result<Vec<Excerpt>, String> {
    let (mut excerpts, mut places) = (Vec::new(), BTreeMap::<Arc<str>, String>::new());
    for file in files {
        let (file, shown) = (file.as_ref(), file.as_ref().display());
        if file.is_dir() {
            return Err(format!("{shown}: this is a folder: name a .jsonl or .jsonl.gz file in it"));
        }
        let cannot = |error: &io::Error| format!("{shown}: cannot be read: {error}");
        let mut lines = opened(file).map_err(|error| cannot(&error))?;
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            let read = lines.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
            if read.map_err(|error| format!("{shown}:{number}: cannot be read: {error}; write UTF-8 text, or gzip it again"))?
                == 0
            {
                break;
            }
            if line.trim().is_empty() {
                continue;
            }
            let place = format!("{shown}:{number}");
            // Some editors begin a file with a byte order mark.
            let excerpt = excerpt(line.trim_start_matches('\u{feff}')).map_err(|problem| format!("{place}: {problem}"))?;
            if let Some(first) = places.insert(excerpt.id.clone(), place.clone()) {
                return Err(format!("{place}: id {:?} is that of {first}, too; give each excerpt an id of its own", excerpt.id));
            }
            excerpts.push(excerpt);
        }
    }
    if excerpts.is_empty() {
        return Err(
            "the files hold no excerpt: write one a line, or export a room by `tertulia history export --as chat`".to_owned()
        );
    }
    Ok(excerpts)
}

fn opened(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let open = File::open(file)?;
    let is_packed = file.extension().is_some_and(|extension| extension == "gz");
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(open))) } else { Box::new(BufReader::new(open)) })
}

/// Parses the excerpt in a line and checks its indices and times.
fn excerpt(line: &str) -> Result<Excerpt, String> {
    let excerpt: Excerpt = serde_json::from_str(line)
        .map_err(|error| format!("is not an excerpt: {error}; docs/evaluate.md describes the keys, one excerpt a line"))?;
    let mut before = 0.0;
    for (index, message) in excerpt.messages.iter().enumerate() {
        let wrong = |what: String| Err(format!("messages[{index}].{what}"));
        if message.n != index {
            return wrong(format!("n is {}, must be {index}: number the messages from 0", message.n));
        }
        if !(before..=LATEST_SECS).contains(&message.t) {
            return wrong(format!("t is {}, must be from {before} to {LATEST_SECS}: sort the messages by time", message.t));
        }
        if message.from.trim().is_empty() {
            return wrong("from is empty: name the author".to_owned());
        }
        if let Some(later) = message.replies_to.iter().find(|earlier| **earlier >= index) {
            return wrong(format!("replies_to has {later}, must have numbers below {index}: link to earlier messages"));
        }
        before = message.t;
    }
    Ok(excerpt)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const GOOD: &str = r#"{"id": "a", "source": "x", "messages": [{"n": 0, "t": 0, "from": "Ana", "text": "Hello", "replies_to": [], "annotated": true}]}"#;

    #[test]
    fn plain_and_packed_files_are_read_alike() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl.gz"));
        fs::write(&plain, format!("{GOOD}\n\n")).unwrap();
        let mut encoder = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
        encoder.write_all(GOOD.replace("\"a\"", "\"b\"").as_bytes()).unwrap();
        encoder.finish().unwrap();

        let excerpts = read(&[plain, packed]).unwrap();

        let ids: Vec<_> = excerpts.iter().map(|excerpt| (&*excerpt.id, &*excerpt.messages[0].text, excerpt.label)).collect();
        assert_eq!(ids, [("a", "Hello", Label::Reply), ("b", "Hello", Label::Reply)]);
    }

    #[test]
    fn an_error_names_the_line_what_is_wrong_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chat.jsonl");
        for (line, problem, way_out) in [
            ("nonsense", "is not an excerpt", "docs/evaluate.md"),
            (r#"{"id": "b"}"#, "missing field `messages`", "docs/evaluate.md"),
            (GOOD, "id \"a\" is that of", "an id of its own"),
            (&GOOD.replace("\"a\"", "\"b\"").replace("\"n\": 0", "\"n\": 4"), "messages[0].n is 4", "number the messages from 0"),
            (&GOOD.replace("\"a\"", "\"b\"").replace("\"t\": 0", "\"t\": -4"), "messages[0].t is -4", "sort the messages"),
            (&GOOD.replace("\"a\"", "\"b\"").replace("[],", "[7],"), "replies_to has 7", "link to earlier messages"),
            (&GOOD.replace("\"a\"", "\"b\"").replace("Ana", " "), "from is empty", "name the author"),
        ] {
            fs::write(&file, format!("{GOOD}\n{line}\n")).unwrap();

            let refused = read(&[&file]).unwrap_err();

            assert!(refused.contains("chat.jsonl:2: ") && refused.contains(problem) && refused.contains(way_out), "{refused}");
        }
        fs::write(&file, "\n").unwrap();
        assert!(read(&[&file]).unwrap_err().contains("no excerpt"));
        assert!(read(&[folder.path()]).unwrap_err().contains("this is a folder"));
        assert!(read(&[folder.path().join("gone.jsonl")]).unwrap_err().contains("cannot be read"));
    }
}
