//! Shows the targets of log lines as paths below `tertulia`, whatever crate a module is in. Log directives can use these paths.

use std::io::{self, Write};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use super::SCOPE;

/// The crates that log, each with the path of its module.
const CRATES: [(&str, &str); 8] = [
    ("tertulia_console", "tertulia::adapters::console"),
    ("tertulia_discord", "tertulia::adapters::discord"),
    ("tertulia_journal", "tertulia::journal"),
    ("tertulia_ports", "tertulia::ports"),
    ("tertulia_settings", "tertulia::settings"),
    ("tertulia_store", "tertulia::adapters::store"),
    ("tertulia_telemetry", "tertulia::telemetry"),
    ("tertulia_tools", "tertulia::adapters::tools"),
];

/// Whether a target is a module of this program.
pub(super) fn is_ours(target: &str) -> bool {
    shown(target).is_some() || below(target, SCOPE).is_some()
}

/// The text that log lines show in place of a target.
fn shown(target: &str) -> Option<String> {
    CRATES.into_iter().find_map(|(name, module)| Some(format!("{module}{}", below(target, name)?)))
}

/// The part of a path below a module.
fn below<'a>(path: &'a str, module: &str) -> Option<&'a str> {
    path.strip_prefix(module).filter(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Log directives, extended by directives for the crates of the modules that they name.
pub(super) fn directives(named: &str) -> String {
    let mut more: Vec<_> = named.split(',').flat_map(of_crates).collect();
    // If several directives apply to one crate, the last one wins. The longest path comes last.
    more.sort_by_key(|(length, _)| *length);
    [named.to_owned()].into_iter().chain(more.into_iter().map(|(_, directive)| directive)).collect::<Vec<_>>().join(",")
}

/// Returns a directive for each crate that this directive applies to. It applies to all targets that begin with its own target.
/// Each result has the length of that target.
fn of_crates(directive: &str) -> impl Iterator<Item = (usize, String)> {
    let (target, rest) = directive.split_at(directive.find(['[', '=']).unwrap_or(directive.len()));
    CRATES.into_iter().filter(move |(name, _)| !target.is_empty() && !name.starts_with(target)).filter_map(
        move |(name, module)| {
            let inside = if module.starts_with(target) { "" } else { below(target, module)? };
            Some((target.len(), format!("{name}{inside}{rest}")))
        },
    )
}

/// Writes lines with the displayed targets.
pub(super) struct Shown<W> {
    pub(super) writer: W,
    /// The text that precedes the target in a line. Empty: the first occurrence of the target is replaced.
    pub(super) mark: &'static str,
}

/// A line to write, with a replacement in it.
pub(super) struct Line<W> {
    writer: W,
    replaced: Option<[String; 2]>,
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Shown<W> {
    type Writer = Line<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { writer: self.writer.make_writer(), replaced: None }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        let target = metadata.target();
        let replaced = shown(target).map(|shown| [target, &*shown].map(|target| format!("{}{target}", self.mark)));
        Line { writer: self.writer.make_writer_for(metadata), replaced }
    }
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let found = self.replaced.take().and_then(|[target, shown]| {
            let at = bytes.windows(target.len()).position(|some| some == target.as_bytes())?;
            Some([&bytes[..at], shown.as_bytes(), &bytes[at + target.len()..]].concat())
        });
        match found {
            Some(line) => self.writer.write_all(&line).map(|()| bytes.len()),
            None => self.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_crate_that_logs_is_listed_with_its_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest of the workspace");
        let members =
            manifest.split_once("\nmembers = [").and_then(|(_, rest)| Some(rest.split_once(']')?.0)).expect("its members");
        let logs = |folder: &&str| {
            fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("a manifest").contains("\ntracing.workspace")
        };
        let mut logging: Vec<_> = members.split('"').filter(|folder| folder.starts_with("src/")).filter(logs).collect();
        logging.sort_by_key(|folder| folder.rsplit('/').next());

        let listed = CRATES.map(|(name, module)| (name.to_owned(), module.to_owned()));

        let expected = logging.iter().map(|folder| {
            let path = folder.trim_start_matches("src/");
            let name = path.rsplit('/').next().unwrap_or_default();
            (format!("tertulia_{name}"), format!("tertulia::{}", path.replace('/', "::")))
        });
        assert_eq!(listed.to_vec(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn targets_are_shown_as_paths_of_modules() {
        assert_eq!(shown("tertulia_telemetry::decisions").as_deref(), Some("tertulia::telemetry::decisions"));
        assert_eq!(shown("tertulia_telemetry").as_deref(), Some("tertulia::telemetry"));
        for other in ["tertulia::server", "tertulia", "tertulia_telemetry_two", "ractor::actor"] {
            assert_eq!(shown(other), None, "{other}");
        }
        let ours = ["tertulia", "tertulia::server", "tertulia_journal::reader"];
        let libraries = ["ractor", "tertuliana", "tertulia_else"];
        assert!(ours.into_iter().all(is_ours) && !libraries.into_iter().any(is_ours));
    }

    #[test]
    fn directives_reach_the_crates_whose_modules_they_name() {
        assert_eq!(directives("info,tertulia=debug"), "info,tertulia=debug");
        assert_eq!(directives("info,tertulia::telemetry=warn"), "info,tertulia::telemetry=warn,tertulia_telemetry=warn");
        assert_eq!(
            directives("tertulia::telemetry::decisions[turn]=warn,tertulia::tel=off"),
            "tertulia::telemetry::decisions[turn]=warn,tertulia::tel=off,tertulia_telemetry=off,tertulia_telemetry::decisions[turn]=warn"
        );
    }
}
