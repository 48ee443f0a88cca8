//! Checks the arrows of docs/design/layout.md L-1: which part of the source may import which, and that files do not import each other in circles.

mod circles;
mod paths;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use circles::circles;
use paths::{Named, Scanned, scan};

/// What one part of the source may import besides itself.
struct Arrow {
    /// The part: a module of the crate, with everything below it.
    from: &'static str,
    /// Modules of the crate that it may import.
    to: &'static [&'static str],
    /// Paths of other crates that it may not name.
    never: &'static [&'static str],
    /// What to do instead.
    advice: &'static str,
}

const EVERYTHING: &[&str] = &[
    "actors",
    "adapters",
    "backend",
    "cards",
    "cli",
    "domain",
    "evaluation",
    "http_client",
    "journal",
    "ports",
    "replay",
    "server",
    "settings",
    "story",
    "telemetry",
    "texts",
];
const NOTHING: &[&str] = &[];
/// No runtime, clock, randomness, input or output.
const IMPURE: &[&str] = &[
    "async_trait",
    "axum",
    "ractor",
    "rand",
    "reqwest",
    "sled",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "time::Instant",
    "time::SystemTime",
    "tokio",
    "tokio_websockets",
    "tracing",
];
/// A script may be read from a file.
const IMPURE_EXCEPT_FILES: &[&str] =
    &["axum", "ractor", "rand", "reqwest", "sled", "std::net", "std::thread", "time::Instant", "time::SystemTime", "tokio"];
/// Bytes in memory are read through the traits of `std::io`.
const IMPURE_EXCEPT_MEMORY: &[&str] = &[
    "axum",
    "ractor",
    "rand",
    "reqwest",
    "sled",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "time::Instant",
    "time::SystemTime",
    "tokio",
    "tracing",
];
/// Crates that belong to one adapter alone.
const ADAPTER_CRATES: &[&str] = &["axum", "reqwest", "sled", "tokio_postgres", "tokio_websockets"];

/// The arrows. Code for tests (`#[cfg(test)]`, and modules declared under it) may import everything.
const ARROWS: &[Arrow] = &[
    Arrow {
        from: "domain",
        to: NOTHING,
        never: IMPURE,
        advice: "pass what the domain needs as an argument, and return what it wants done as an output; time is a `Moment`",
    },
    Arrow {
        from: "settings",
        to: &["domain"],
        never: &["axum", "ractor", "sled", "tokio", "time::Instant", "time::SystemTime"],
        advice: "settings are plain data; types that several parts share belong in src/domain",
    },
    Arrow {
        from: "ports",
        to: &["domain", "settings", "texts"],
        never: ADAPTER_CRATES,
        advice: "a port says what the core needs in terms of the domain, not how it is served",
    },
    Arrow {
        from: "journal",
        // Settings that are stored: overrides at run time.
        to: &["domain", "ports", "settings::companion"],
        never: ADAPTER_CRATES,
        advice: "the journal defines what is stored and how it is read, not who writes it or where",
    },
    Arrow {
        from: "telemetry",
        // Its own section of the settings.
        to: &["domain", "http_client", "ports", "settings::telemetry"],
        never: &["axum", "ractor", "sled"],
        advice: "telemetry records what it is given; give it the value",
    },
    Arrow {
        from: "replay",
        to: &["domain", "settings"],
        never: IMPURE_EXCEPT_FILES,
        advice: "a replay drives the domain alone, in virtual time",
    },
    Arrow {
        from: "evaluation",
        // Of actors: the questions that companions ask.
        to: &["actors::companion::question", "domain", "ports", "replay", "settings"],
        never: IMPURE_EXCEPT_FILES,
        advice: "an evaluation makes requests and takes answers: let src/lab ask the models",
    },
    Arrow {
        from: "story",
        to: &["domain", "journal", "ports", "settings", "texts"],
        never: IMPURE,
        advice: "a story takes events and gives facts and words: read the record and ask actors in src/backend",
    },
    Arrow {
        from: "cards",
        // The keys of a companion's file.
        to: &["domain", "settings::companion"],
        never: IMPURE_EXCEPT_MEMORY,
        advice: "cards take bytes and give values: let the caller read files and fetch nothing",
    },
    Arrow {
        from: "adapters",
        // Of telemetry: the names, the instruments, and the records of gateway connections, which no actor makes.
        to: &[
            "cards",
            "domain",
            "http_client",
            "ports",
            "settings",
            "telemetry::attributes",
            "telemetry::gateway",
            "telemetry::instruments",
            "telemetry::metrics",
            "texts",
        ],
        never: &["ractor"],
        advice: "an adapter serves a port: name the trait in src/ports, and let src/server.rs connect the two",
    },
    Arrow {
        from: "actors",
        // Of cards: pictures of messages for models. Of texts: sentences of the server in a statement or in place of one.
        to: &["cards::picture", "cards::posted", "domain", "journal", "ports", "settings", "telemetry", "texts"],
        never: ADAPTER_CRATES,
        advice: "an actor asks a port: name the trait in src/ports, and let src/server.rs pass in the adapter",
    },
    Arrow {
        from: "backend",
        to: &["actors", "domain", "journal", "ports", "settings", "story", "telemetry", "texts"],
        never: ADAPTER_CRATES,
        advice: "the backend answers requests from the record and the actors: name the trait in src/ports",
    },
    Arrow { from: "texts", to: NOTHING, never: IMPURE, advice: "texts say what they are given, in a language" },
    Arrow { from: "http_client", to: NOTHING, never: &["ractor"], advice: "a client is built here, and used elsewhere" },
    Arrow { from: "cli", to: EVERYTHING, never: NOTHING, advice: "" },
    Arrow { from: "server", to: EVERYTHING, never: NOTHING, advice: "" },
    Arrow { from: "lab", to: EVERYTHING, never: NOTHING, advice: "" },
    Arrow { from: "main", to: EVERYTHING, never: NOTHING, advice: "" },
    Arrow { from: "lib", to: NOTHING, never: NOTHING, advice: "src/lib.rs declares the parts and does nothing" },
];

/// What a group of actors may import from the others.
struct Group {
    /// The group: a module of `actors`, with everything below it.
    name: &'static str,
    /// Whether it may import the [`FOUNDATION`].
    uses_foundation: bool,
    /// Other modules of `actors` that it may import.
    to: &'static [&'static str],
}

/// What most groups build on: the messages, and the parts of the runtime that are not actors.
const FOUNDATION: &[&str] = &[
    "messages",
    "runtime::directory",
    "runtime::hub",
    "runtime::in_flight",
    "runtime::context",
    "runtime::actor_keys",
    "runtime::owned_task",
    "runtime::supervision",
    "runtime::watchdog",
];

/// The arrows between the groups of actors.
const GROUPS: &[Group] = &[
    // Messages between groups import no group.
    Group { name: "messages", uses_foundation: false, to: &[] },
    Group {
        name: "models",
        uses_foundation: false,
        to: &["messages", "runtime::actor_keys", "runtime::directory", "runtime::owned_task"],
    },
    Group { name: "recall", uses_foundation: false, to: &[] },
    Group { name: "writer", uses_foundation: true, to: &[] },
    Group { name: "inbound", uses_foundation: true, to: &["writer"] },
    Group { name: "membership", uses_foundation: true, to: &["inbound", "writer"] },
    Group { name: "companion", uses_foundation: true, to: &["membership::memberships", "models", "recall", "writer::requests"] },
    Group { name: "calls", uses_foundation: true, to: &["inbound", "writer"] },
    Group {
        name: "channel",
        uses_foundation: true,
        to: &[
            "calls::recordings",
            "companion",
            "erasure::deletion",
            "inbound",
            "membership",
            "models",
            "recall",
            "writer::requests",
        ],
    },
    Group { name: "erasure", uses_foundation: true, to: &["channel::folded", "inbound", "writer"] },
    // The tree starts all actors, and the context holds what they share.
    Group {
        name: "runtime",
        uses_foundation: true,
        to: &["calls", "channel", "companion", "erasure::rewrite_locks", "membership", "models", "recall", "writer"],
    },
];

/// The number of files that may import each other in a circle.
const LARGEST_CIRCLE: usize = 3;

#[test]
fn the_source_follows_the_arrows() {
    let files = &*FILES;

    let violations: Vec<_> = files.iter().flat_map(|file| violations(&file.shown, &file.module, &file.scanned.named)).collect();

    assert!(files.len() > 50, "only {} files were found", files.len());
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn a_forbidden_import_is_reported_with_its_line_and_an_alternative() {
    let source = "use std::sync::Arc;\n\nuse crate::{domain::id::Seq, adapters::{llm, store::Store}};\n";

    let violations = violations_in("actors/writer.rs", source);

    assert_eq!(violations.len(), 2, "{violations:?}");
    let expected = "src/actors/writer.rs:3: actors may not import adapters (crate::adapters::llm)";
    assert!(violations[0].starts_with(expected), "{}", violations[0]);
    assert!(violations[1].contains("crate::adapters::store::Store"), "{}", violations[1]);
    assert!(violations[1].contains("an actor asks a port"), "{}", violations[1]);
}

#[test]
fn a_group_of_actors_imports_only_what_the_table_allows() {
    for (file, source, expected) in [
        ("actors/companion/reply.rs", "use crate::actors::channel::Channel;", 1),
        ("actors/companion/reply.rs", "use super::super::channel::Channel; use super::persona;", 1),
        (
            "actors/companion.rs",
            "use crate::actors::{messages::channel::ChannelMessage, runtime::{context::Context, root::Root}};",
            1,
        ),
        ("actors/messages/channel.rs", "use crate::actors::runtime::context::Context;", 1),
        ("actors/messages/channel.rs", "use crate::actors::models::Pool;", 1),
        ("actors/messages/guild.rs", "use crate::actors::runtime::supervision::child::RestartType;", 1),
        ("actors/messages/guild.rs", "use super::supervision::Status;", 0),
        ("actors/erasure/retention.rs", "use crate::actors::channel::folded::folded;", 0),
        ("actors/channel/post_commit.rs", "use crate::backend::platform_calls;", 1),
        ("actors/extras.rs", "", 1),
        ("actors/extras/one.rs", "use crate::domain::id::Seq;", 1),
    ] {
        let violations = violations_in(file, source);

        assert_eq!(violations.len(), expected, "{file}: {source}\n{violations:?}");
    }
}

#[test]
fn no_more_than_three_files_import_each_other() {
    let files = &*FILES;

    let named: Vec<_> = files.iter().map(|file| (&*file.module, &*file.scanned.named)).collect();
    let large: Vec<_> = circles(&named).into_iter().filter(|circle| circle.len() > LARGEST_CIRCLE).collect();

    assert!(large.is_empty(), "these import each other; move what they share to a file that imports none of them:\n{large:#?}");
}

#[test]
fn import_circles_are_found_through_any_kind_of_path() {
    let found = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(file, source)| (module(file), scan(source, &module(file)).named)).collect();
        circles(&files.iter().map(|(module, named)| (&**module, &**named)).collect::<Vec<_>>())
    };
    let ring = [
        ("a/one.rs", "use super::two::Two;"),
        ("a/two.rs", "use crate::b::{self, three};"),
        ("b/three.rs", "fn f() { super::four::g(); }"),
        ("b/four.rs", "#[derive(Debug)] struct Four(crate::a::one::One);"),
        ("b.rs", "mod three; mod four;"),
        ("c.rs", "use crate::a::one::One;"),
    ];

    assert_eq!(found(&ring), [["a::one", "a::two", "b::four", "b::three"]]);
    assert_eq!(found(&[ring[0], ring[1], ring[2], ring[4]]), [[""; 0]; 0]);
    // A module that another one declares belongs to it.
    assert_eq!(found(&[("d.rs", "use one::One;"), ("d/one.rs", "use super::State;")]), [[""; 0]; 0]);
    assert_eq!(found(&[("d.rs", "use one::One;"), ("d/one.rs", "use crate::e::E;"), ("e.rs", "use crate::d::D;")]).len(), 1);
    assert_eq!(found(&[("e.rs", "#[cfg(test)]\nmod tests { use crate::f::F; }"), ("f.rs", "use crate::e::E;")]), [[""; 0]; 0]);
}

#[test]
fn paths_are_found_anywhere_in_the_code() {
    for (source, expected) in [
        ("fn f() { let at = tokio::time::sleep(d); }", 1),
        ("use std::{sync::Arc, time::{Duration, Instant}};", 1),
        ("use super::super::server::clock::Clock;", 1),
        ("mod inner { use super::super::super::actors::directory; }", 1),
        ("pub(in crate::adapters::llm) struct Dice;", 1),
        ("use crate::{server::{self as lead}, adapters::*};", 2),
        ("fn f() { crate::domain::id::MAX as tokio::Count; }", 1),
        ("// tokio::spawn\nconst A: &str = \"crate::adapters\"; /* rand::rng */", 0),
        ("const Q: char = '\"'; const R: &str = r#\"tokio::\"#; fn f<'a>(x: &'a str) {}", 0),
        ("use super::moment::Moment; use self::x::Y; use crate::domain::policy::gate::Gate;", 0),
        ("use crate::cards::Card;", 1),
        ("#[cfg(test)]\nmod tests { use tokio::time; fn f() { crate::adapters::x(); } }\nstruct A;", 0),
        ("#[cfg(test)]\nuse std::fs;\n#[cfg(test)]\nmod fake;\nuse std::sync::Arc;", 0),
        ("#[cfg(test)]\nmod fake;\nuse std::fs;", 1),
    ] {
        let violations = violations_in("story/rounds.rs", source);

        assert_eq!(violations.len(), expected, "{source}\n{violations:?}");
    }
    // In a crate of its own, a path begins there.
    assert_eq!(violations_in("domain/gate.rs", "use crate::policy::gate::Gate; use std::fs;").len(), 1);
    assert_eq!(violations_in("settings/load.rs", "use crate::server::Server; use crate::domain::id::Seq;").len(), 0);
}

#[test]
fn a_part_missing_from_the_table_is_reported() {
    assert_eq!(
        violations_in("extras.rs", ""),
        ["src/extras.rs: \"extras\" is not in the table of tests/it/arrows.rs; list there what it may import"]
    );
}

fn violations_in(file: &str, source: &str) -> Vec<String> {
    let module = module(file);
    violations(&format!("src/{file}"), &module, &scan(source, &module).named)
}

/// The forbidden paths that a source file names, one message each.
fn violations(shown: &str, module: &[String], named: &[Named]) -> Vec<String> {
    let part = module[0].as_str();
    let Some(arrow) = ARROWS.iter().find(|arrow| arrow.from == part) else {
        return vec![format!("{shown}: \"{part}\" is not in the table of tests/it/arrows.rs; list there what it may import")];
    };
    let group = match module {
        [part, name, ..] if part == "actors" => match GROUPS.iter().find(|group| group.name == name) {
            Some(group) => Some(group),
            None => {
                return vec![format!(
                    "{shown}: \"{name}\" is not among the groups of tests/it/arrows.rs; list there what it may import"
                )];
            }
        },
        _ => None,
    };
    let violation = |named: &Named| {
        let forbidden = forbidden(arrow, module, named).or_else(|| forbidden_of_actors(group?, named))?;
        Some(format!("{shown}:{}: {forbidden}", named.line))
    };
    named.iter().filter_map(violation).collect()
}

fn forbidden_of_actors(group: &Group, named: &Named) -> Option<String> {
    let name = group.name;
    let target = named.path.strip_prefix(&["crate".to_owned(), "actors".to_owned()])?.join("::");
    let is_in = |module: &str| format!("{target}::").starts_with(&format!("{module}::"));
    let is_allowed = is_in(name)
        || group.to.iter().any(|module| is_in(module))
        || group.uses_foundation && FOUNDATION.iter().any(|module| is_in(module));
    (!is_allowed).then(|| {
        format!("actors::{name} may not import {target}: what both need belongs in actors::messages, or in a leaf module")
    })
}

/// What all adapters use: how endpoints are called, how programs are run, how many clients are served at a time, and how a WebSocket is driven.
const SHARED_BY_ADAPTERS: [&str; 4] = ["endpoint", "program", "slots", "web_socket"];

fn forbidden(arrow: &Arrow, module: &[String], named: &Named) -> Option<String> {
    let (from, path) = (arrow.from, named.path.join("::"));
    let advice = arrow.advice;
    if named.path[0] != "crate" {
        let is_meant = |never: &&&str| format!("::{path}::").contains(&format!("::{never}::"));
        return arrow.never.iter().find(is_meant).map(|never| format!("{from} may not name {never} ({path}): {advice}"));
    }
    let target = named.path.get(1)?;
    if from == "adapters" && target == "adapters" {
        let is_another = named
            .path
            .get(2)
            .is_some_and(|other| !SHARED_BY_ADAPTERS.contains(&&**other) && module.get(1).is_some_and(|own| own != other));
        return is_another.then(|| format!("one adapter may not import another ({path}): {advice}"));
    }
    let is_listed = |to: &&str| format!("{path}::").starts_with(&format!("crate::{to}::"));
    let is_allowed = target == from || arrow.to.iter().any(is_listed);
    (!is_allowed).then(|| format!("{from} may not import {target} ({path}): {advice}"))
}

struct SourceFile {
    shown: String,
    module: Vec<String>,
    scanned: Scanned,
}

static FILES: LazyLock<Vec<SourceFile>> = LazyLock::new(source_files);

/// The files under `src/`, except modules that are declared for tests alone, and files below them.
fn source_files() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    let inside = |path: &PathBuf| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let mut found: Vec<_> = paths.iter().map(|path| (module(&inside(path)), inside(path), path)).collect();
    // A module is read before those that it declares.
    found.sort_by_key(|(module, inside, _)| (*module != ["lib"], module.len(), inside.clone()));
    let (mut files, mut for_tests) = (Vec::new(), BTreeSet::new());
    for (module, inside, path) in found {
        if (1..=module.len()).any(|length| for_tests.contains(&module[..length])) {
            continue;
        }
        let source = fs::read_to_string(path).expect("a source file can be read");
        let scanned = scan(&source, &module);
        let within = if module == ["lib"] { &[][..] } else { &*module };
        for_tests.extend(scanned.test_modules.iter().map(|name| [within, std::slice::from_ref(name)].concat()));
        files.push(SourceFile { shown: format!("src/{inside}"), module, scanned });
    }
    files
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("build.rs") {
            found.push(path);
        }
    }
}

/// The module that a file holds: `domain/gate.rs` is `domain`, `gate`.
fn module(inside: &str) -> Vec<String> {
    let path = inside.trim_end_matches(".rs");
    // The root of a crate is the part itself.
    path.strip_suffix("/lib").unwrap_or(path).split('/').map(str::to_owned).collect()
}
