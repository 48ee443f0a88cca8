//! Holds the arrows of docs/design/layout.md L-1: which part of the source may know which; and that files do not import each other in circles.

mod circles;
mod paths;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use circles::circles;
use paths::{Named, scan};

/// What one part of the source may know besides itself.
struct Arrow {
    /// The part: a module of the crate, with all that is below it.
    from: &'static str,
    /// Modules of the crate that it may know.
    to: &'static [&'static str],
    /// Paths of other crates that it may not name.
    never: &'static [&'static str],
    /// What to do instead.
    way_out: &'static str,
}

const EVERYONE: &[&str] =
    &["actors", "adapters", "cli", "domain", "journal", "ports", "replay", "server", "settings", "telemetry"];
const NOTHING: &[&str] = &[];
/// No runtime, no clock, no chance, no input or output.
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
const IMPURE_BUT_FOR_FILES: &[&str] =
    &["axum", "ractor", "rand", "reqwest", "sled", "std::net", "std::thread", "time::Instant", "time::SystemTime", "tokio"];
/// What belongs to one adapter alone.
const SERVED: &[&str] = &["axum", "reqwest", "sled", "tokio_websockets"];

/// The arrows. Code for tests (`#[cfg(test)]`, and modules declared under it) may know everyone.
const ARROWS: &[Arrow] = &[
    Arrow {
        from: "domain",
        to: &["settings"],
        never: IMPURE,
        way_out: "what the domain needs is an argument, what it wants done is an output; time is a `Moment`",
    },
    Arrow {
        from: "settings",
        to: &["domain"],
        never: &["axum", "ractor", "sled", "tokio", "time::Instant", "time::SystemTime"],
        way_out: "settings are plain data; words that several parts share belong into src/domain",
    },
    Arrow {
        from: "ports",
        to: &["domain", "settings"],
        never: SERVED,
        way_out: "a port says what the core needs in the words of the domain, not how it is served",
    },
    Arrow {
        from: "journal",
        // What is stored of settings: overrides at run time.
        to: &["domain", "ports", "settings::companion"],
        never: SERVED,
        way_out: "the journal knows what is stored and how it reads, not who writes it or where",
    },
    Arrow {
        from: "telemetry",
        // Its own section.
        to: &["domain", "ports", "settings::telemetry"],
        never: &["axum", "ractor", "sled"],
        way_out: "telemetry records what it is given; give it the value",
    },
    Arrow {
        from: "replay",
        to: &["domain", "settings"],
        never: IMPURE_BUT_FOR_FILES,
        way_out: "a replay drives the domain alone, in virtual time",
    },
    Arrow {
        from: "adapters",
        // Of telemetry the names, what they measure with, and what is recorded of connections that no actor knows of.
        to: &[
            "domain",
            "ports",
            "settings",
            "telemetry::attributes",
            "telemetry::gateway",
            "telemetry::instruments",
            "telemetry::metrics",
        ],
        never: &["ractor"],
        way_out: "an adapter serves a port: name the trait in src/ports, and let src/server.rs put the two together",
    },
    Arrow {
        from: "actors",
        to: &["domain", "journal", "ports", "settings", "telemetry"],
        never: SERVED,
        way_out: "an actor asks a port: name the trait in src/ports, and let src/server.rs hand over the adapter",
    },
    Arrow { from: "cli", to: EVERYONE, never: NOTHING, way_out: "" },
    Arrow { from: "server", to: EVERYONE, never: NOTHING, way_out: "" },
    Arrow { from: "main", to: EVERYONE, never: NOTHING, way_out: "" },
    Arrow { from: "lib", to: NOTHING, never: NOTHING, way_out: "src/lib.rs declares the parts and does nothing" },
];

/// What a group of actors may know of the others.
struct Group {
    /// The group: a module of `actors`, with all that is below it.
    name: &'static str,
    /// Whether it may know the [`GROUND`].
    stands_on_ground: bool,
    /// Modules of `actors` that it may know besides.
    to: &'static [&'static str],
}

/// What actors stand on: the messages, and of the runtime what is no actor.
const GROUND: &[&str] = &[
    "messages",
    "runtime::directory",
    "runtime::hub",
    "runtime::in_flight",
    "runtime::context",
    "runtime::actor_keys",
    "runtime::supervision",
    "runtime::watchdog",
];

/// The arrows between the groups of actors.
const GROUPS: &[Group] = &[
    // What everyone tells each other knows no group.
    Group { name: "messages", stands_on_ground: false, to: &[] },
    Group { name: "models", stands_on_ground: false, to: &["messages", "runtime::directory"] },
    Group { name: "writer", stands_on_ground: true, to: &[] },
    Group { name: "inbound", stands_on_ground: true, to: &["writer"] },
    Group { name: "membership", stands_on_ground: true, to: &["inbound", "writer"] },
    Group { name: "companion", stands_on_ground: true, to: &["membership::memberships", "models"] },
    Group { name: "channel", stands_on_ground: true, to: &["companion", "inbound", "membership", "models"] },
    Group { name: "erasure", stands_on_ground: true, to: &["channel::folded", "inbound", "writer"] },
    // The tree starts all actors, and the context holds what they share.
    Group {
        name: "runtime",
        stands_on_ground: true,
        to: &["channel", "companion", "erasure::rewrite_locks", "membership", "models", "writer"],
    },
    Group {
        name: "service",
        stands_on_ground: true,
        to: &["channel", "erasure", "inbound", "membership", "models", "runtime", "writer"],
    },
];

/// So many files may import each other in a circle.
const LARGEST_CIRCLE: usize = 3;

#[test]
fn the_source_keeps_to_the_arrows() {
    let files = source_files();

    let violations: Vec<_> = files.iter().flat_map(|file| violations(&file.shown, &file.module, &file.source)).collect();

    assert!(files.len() > 50, "only {} files were found", files.len());
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn a_forbidden_arrow_is_told_with_its_place_and_the_way_out() {
    let source = "use std::sync::Arc;\n\nuse crate::{domain::id::Seq, adapters::{llm, store::Store}};\n";

    let told = violations("src/actors/writer.rs", &module("actors/writer.rs"), source);

    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("src/actors/writer.rs:3: actors may not know adapters (crate::adapters::llm)"), "{}", told[0]);
    assert!(told[1].contains("crate::adapters::store::Store"), "{}", told[1]);
    assert!(told[1].contains("an actor asks a port"), "{}", told[1]);
}

#[test]
fn a_group_of_actors_knows_only_those_that_it_stands_on() {
    for (file, source, expected) in [
        ("actors/companion/reply.rs", "use crate::actors::channel::Channel;", 1),
        ("actors/companion/reply.rs", "use super::super::channel::Channel; use super::persona;", 1),
        (
            "actors/companion.rs",
            "use crate::actors::{messages::channel::ChannelMessage, runtime::{context::Kit, root::Root}};",
            1,
        ),
        ("actors/messages/channel.rs", "use crate::actors::runtime::context::Kit;", 1),
        ("actors/messages/channel.rs", "use crate::actors::models::Pool;", 1),
        ("actors/messages/guild.rs", "use crate::actors::runtime::supervision::child::RestartType;", 1),
        ("actors/messages/guild.rs", "use super::supervision::Upkeep;", 0),
        ("actors/erasure/retention.rs", "use crate::actors::channel::folded::folded;", 0),
        ("actors/channel/duties.rs", "use crate::actors::service::ActorHouse;", 1),
        ("actors/extras.rs", "", 1),
        ("actors/extras/one.rs", "use crate::domain::id::Seq;", 1),
    ] {
        let told = violations(&format!("src/{file}"), &module(file), source);

        assert_eq!(told.len(), expected, "{file}: {source}\n{told:?}");
    }
}

#[test]
fn no_more_than_three_files_import_each_other() {
    let files = source_files();

    let named: Vec<_> = files.iter().map(|file| (&*file.module, &*file.source)).collect();
    let large: Vec<_> = circles(&named).into_iter().filter(|circle| circle.len() > LARGEST_CIRCLE).collect();

    assert!(large.is_empty(), "these import each other; move what they share to a file that imports none of them:\n{large:#?}");
}

#[test]
fn files_that_import_each_other_are_told_whichever_way_they_do() {
    let told = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(file, source)| (module(file), *source)).collect();
        circles(&files.iter().map(|(module, source)| (&**module, *source)).collect::<Vec<_>>())
    };
    let ring = [
        ("a/one.rs", "use super::two::Two;"),
        ("a/two.rs", "use crate::b::{self, three};"),
        ("b/three.rs", "fn f() { super::four::g(); }"),
        ("b/four.rs", "#[derive(Debug)] struct Four(crate::a::one::One);"),
        ("b.rs", "mod three; mod four;"),
        ("c.rs", "use crate::a::one::One;"),
    ];

    assert_eq!(told(&ring), [["a::one", "a::two", "b::four", "b::three"]]);
    assert_eq!(told(&[ring[0], ring[1], ring[2], ring[4]]), [[""; 0]; 0]);
    // What a module declares belongs to it.
    assert_eq!(told(&[("d.rs", "use one::One;"), ("d/one.rs", "use super::State;")]), [[""; 0]; 0]);
    assert_eq!(told(&[("d.rs", "use one::One;"), ("d/one.rs", "use crate::e::E;"), ("e.rs", "use crate::d::D;")]).len(), 1);
    assert_eq!(told(&[("e.rs", "#[cfg(test)]\nmod tests { use crate::f::F; }"), ("f.rs", "use crate::e::E;")]), [[""; 0]; 0]);
}

#[test]
fn paths_are_found_wherever_they_stand() {
    for (source, expected) in [
        ("fn f() { let at = tokio::time::sleep(d); }", 1),
        ("use std::{sync::Arc, time::{Duration, Instant}};", 1),
        ("use super::super::ports::clock::Clock;", 1),
        ("mod inner { use super::super::super::actors::directory; }", 1),
        ("pub(in crate::adapters::llm) struct Dice;", 1),
        ("use crate::{server::{self as lead}, adapters::*};", 2),
        ("fn f() { crate::domain::id::MAX as tokio::Count; }", 1),
        ("// tokio::spawn\nconst A: &str = \"crate::adapters\"; /* rand::rng */", 0),
        ("const Q: char = '\"'; const R: &str = r#\"tokio::\"#; fn f<'a>(x: &'a str) {}", 0),
        ("use super::moment::Moment; use self::x::Y; use crate::settings::gate::Gate;", 0),
        ("#[cfg(test)]\nmod tests { use tokio::time; fn f() { crate::adapters::x(); } }\nstruct A;", 0),
        ("#[cfg(test)]\nuse std::fs;\n#[cfg(test)]\nmod fake;\nuse std::sync::Arc;", 0),
        ("#[cfg(test)]\nmod fake;\nuse std::fs;", 1),
    ] {
        let told = violations("src/domain/gate.rs", &module("domain/gate.rs"), source);

        assert_eq!(told.len(), expected, "{source}\n{told:?}");
    }
}

#[test]
fn a_part_that_is_not_in_the_table_is_told() {
    let told = violations("src/extras.rs", &module("extras.rs"), "");

    assert_eq!(told, ["src/extras.rs: \"extras\" is not in the table of tests/it/arrows.rs; say there what it may know"]);
}

/// What a source file may not name, told for a reader.
fn violations(shown: &str, module: &[String], source: &str) -> Vec<String> {
    let part = module[0].as_str();
    let Some(arrow) = ARROWS.iter().find(|arrow| arrow.from == part) else {
        return vec![format!("{shown}: \"{part}\" is not in the table of tests/it/arrows.rs; say there what it may know")];
    };
    let group = match module {
        [part, name, ..] if part == "actors" => match GROUPS.iter().find(|group| group.name == name) {
            Some(group) => Some(group),
            None => {
                return vec![format!(
                    "{shown}: \"{name}\" is not among the groups of tests/it/arrows.rs; say there what it may know"
                )];
            }
        },
        _ => None,
    };
    let named = scan(source, module).named;
    let told = |named: &Named| {
        let forbidden = forbidden(arrow, module, named).or_else(|| forbidden_of_actors(group?, named))?;
        Some(format!("{shown}:{}: {forbidden}", named.line))
    };
    named.iter().filter_map(told).collect()
}

fn forbidden_of_actors(group: &Group, named: &Named) -> Option<String> {
    let name = group.name;
    let target = named.path.strip_prefix(&["crate".to_owned(), "actors".to_owned()])?.join("::");
    let is_in = |module: &str| format!("{target}::").starts_with(&format!("{module}::"));
    let is_known = is_in(name)
        || group.to.iter().any(|module| is_in(module))
        || group.stands_on_ground && GROUND.iter().any(|module| is_in(module));
    (!is_known).then(|| {
        format!("actors::{name} may not know {target}: what both need belongs into actors::messages, or into a leaf module")
    })
}

fn forbidden(arrow: &Arrow, module: &[String], named: &Named) -> Option<String> {
    let (from, path) = (arrow.from, named.path.join("::"));
    let way_out = arrow.way_out;
    if named.path[0] != "crate" {
        let is_meant = |never: &&&str| format!("::{path}::").contains(&format!("::{never}::"));
        return arrow.never.iter().find(is_meant).map(|never| format!("{from} may not name {never} ({path}): {way_out}"));
    }
    let target = named.path.get(1)?;
    if from == "adapters" && target == "adapters" {
        let is_another = named.path.get(2).is_some_and(|other| module.get(1).is_some_and(|own| own != other));
        return is_another.then(|| format!("one adapter may not know another ({path}): {way_out}"));
    }
    let is_allowed = |to: &&str| format!("{path}::").starts_with(&format!("crate::{to}::"));
    let is_known = target == from || arrow.to.iter().any(is_allowed);
    (!is_known).then(|| format!("{from} may not know {target} ({path}): {way_out}"))
}

struct SourceFile {
    shown: String,
    module: Vec<String>,
    source: String,
}

/// The files under `src/`, but for modules that are declared for tests alone and what is below them.
fn source_files() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    let files: Vec<_> = paths
        .iter()
        .map(|path| {
            let inside = path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            let source = fs::read_to_string(path).expect("a source file can be read");
            SourceFile { shown: format!("src/{inside}"), module: module(&inside), source }
        })
        .collect();
    let for_tests: BTreeSet<Vec<String>> = files
        .iter()
        .flat_map(|file| {
            let modules = scan(&file.source, &file.module).test_modules;
            let within = if file.module == ["lib"] { &[][..] } else { &*file.module };
            modules.into_iter().map(|name| within.iter().cloned().chain([name]).collect::<Vec<_>>()).collect::<Vec<_>>()
        })
        .collect();
    let is_for_tests = |file: &SourceFile| (1..=file.module.len()).any(|length| for_tests.contains(&file.module[..length]));
    files.into_iter().filter(|file| !is_for_tests(file)).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module that a file holds: `domain/gate.rs` is `domain`, `gate`.
fn module(inside: &str) -> Vec<String> {
    inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect()
}
