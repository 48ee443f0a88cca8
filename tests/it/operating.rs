//! Checks that the documents agree with the program and with each other: the settings, alerts, tests and files that they name, their links, and
//! the files in `deploy/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tertulia::cli::{EXIT_STORE, EXIT_USAGE};
use toml::Value;
use yaml_rust2::{Yaml, YamlLoader};

#[test]
fn every_documented_setting_exists_and_has_the_documented_default() {
    let settings = settings();
    let sections: Vec<_> = settings.keys().map(String::as_str).collect();
    // The page about telemetry names spans that look like settings.
    let names_settings = |page: &String| page.starts_with("docs/") && page != "docs/design/telemetry.md";
    let pages: Vec<_> = pages().into_iter().filter(names_settings).map(|page| read(&page)).collect();

    let named: Vec<_> = pages
        .iter()
        .flat_map(|page| code_spans(page))
        .filter(|(code, _)| {
            code.split_once('.').is_some_and(|(section, key)| sections.contains(&section) && !["json", "lock"].contains(&key))
        })
        .filter(|(code, _)| code.chars().all(|char| char.is_ascii_lowercase() || "._".contains(char)))
        .collect();

    assert!(named.len() > 30, "the pages name settings: {named:?}");
    for (code, after) in named {
        let value = find(&settings, code).unwrap_or_else(|| panic!("{code} is not a key of config/default.toml"));
        // A duration is a text: `1d`.
        if let Some(documented) = number_in_parentheses(after).filter(|_| !value.is_str()) {
            let default = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
            assert_eq!(default, Some(documented), "{code}");
        }
    }
}

#[test]
fn every_test_and_file_named_in_the_security_and_promises_pages_exists() {
    let mut sources = BTreeMap::new();
    for folder in ["src", "tests"] {
        collect_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut sources);
    }
    let pages = ["docs/security.md", "docs/promises.md"].map(read);
    let (mut tests, mut files) = (0, 0);

    for (code, _) in pages.iter().flat_map(|page| code_spans(page)) {
        if let Some(folder) = code.strip_suffix('/').filter(|folder| folder.contains('/') && !folder.contains(':')) {
            assert!(sources.keys().any(|path| path.contains(&format!("{folder}/"))), "there is no {code}");
        } else if code.ends_with(".rs") {
            files += 1;
            assert!(sources.keys().any(|path| path.ends_with(&format!("/{code}"))), "there is no {code}");
        } else if code.matches('_').count() > 3 && code.chars().all(|char| char.is_ascii_lowercase() || char == '_') {
            tests += 1;
            assert!(sources.values().any(|source| source.contains(&format!("fn {code}("))), "there is no test {code}");
        }
    }

    assert!(tests > 5 && files > 10, "{tests} tests, {files} files");
}

#[test]
fn every_function_of_the_walkthrough_is_in_its_file() {
    let mut sources = BTreeMap::new();
    collect_sources(&root().join("src"), &mut sources);
    let page = read("docs/walkthrough.md");
    let (mut files, mut functions) = (Vec::new(), 0);

    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.split('|').collect();
        let [_, _, named, called, _] = cells[..] else { continue };
        if !named.contains("the same") {
            files = code_spans(named).map(|(code, _)| code.to_owned()).collect();
        }
        for (code, _) in code_spans(called) {
            functions += 1;
            let name = code.split('(').next().unwrap_or(code).rsplit("::").next().unwrap_or(code);
            let is_there = |(path, source): (&String, &String)| {
                files.iter().any(|file| path.contains(&**file)) && source.contains(&format!("fn {name}"))
            };
            assert!(sources.iter().any(is_there), "{code} is not in {files:?}");
        }
    }

    assert!(functions > 30, "{functions}");
}

#[test]
fn every_link_in_a_document_leads_to_an_existing_file_and_heading() {
    let (mut broken, mut links) = (Vec::new(), 0);
    for page in pages() {
        for target in links_of(&read(&page)) {
            links += 1;
            let (path, anchor) = target.split_once('#').map_or((&*target, None), |(path, anchor)| (path, Some(anchor)));
            let folder = Path::new(&page).parent().expect("a folder");
            let path = if path.is_empty() { root().join(&page) } else { root().join(folder).join(path) };
            let is_there = path.exists()
                && anchor.is_none_or(|anchor| fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !is_there {
                broken.push(format!("{page}: {target}"));
            }
        }
    }

    assert!(links > 50, "{links} links");
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_rule_named_in_the_code_is_in_the_specification() {
    let (mut sources, mut missing, mut named) = (BTreeMap::new(), Vec::new(), 0);
    for folder in ["src", "tests", "benches"] {
        collect_sources(&root().join(folder), &mut sources);
    }
    // Built from parts, so that this file names no rule.
    let specification = ["docs", "design", ""].join("/");
    for (path, source) in &sources {
        for reference in source.split(&specification).skip(1) {
            let Some((page, rest)) = reference.split_once(".md ") else { continue };
            let rule = rest.split(|char: char| !char.is_ascii_alphanumeric() && char != '-').next().unwrap_or_default();
            if rule.split_once('-').is_none_or(|(letter, number)| letter.len() != 1 || number.parse::<u32>().is_err()) {
                continue;
            }
            named += 1;
            if !read(&format!("{specification}{page}.md")).contains(&format!("**{rule}**")) {
                missing.push(format!("{path}: {page}.md {rule}"));
            }
        }
    }

    assert!(named > 40, "{named} references");
    assert_eq!(missing, [""; 0]);
}

#[test]
fn no_rule_of_the_specification_shares_its_id_with_another() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in pages().into_iter().filter(|page| page.starts_with("docs/design/")) {
        for line in read(&page).lines() {
            let Some((rule, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) else { continue };
            if rule.split_once('-').is_some_and(|(letter, number)| letter.len() == 1 && number.parse::<u32>().is_ok()) {
                places.entry(rule.to_owned()).or_default().push(page.clone());
            }
        }
    }

    assert!(places.len() > 200, "{} rules", places.len());
    places.retain(|_, pages| pages.len() > 1);
    assert_eq!(places, BTreeMap::new());
}

/// The paths of the repository's documents, from its root.
fn pages() -> Vec<String> {
    let top = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let below = [
        "src/README.md",
        "src/adapters/discord/README.md",
        "dashboards/README.md",
        "deploy/README.md",
        "deploy/kubernetes/README.md",
    ];
    let named = top.into_iter().chain(below);
    let docs = ["docs", "docs/design", "docs/adr"].into_iter().flat_map(|folder| {
        let names = fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        names.map(move |name| format!("{folder}/{}", name.to_string_lossy()))
    });
    let docs = docs.filter(|path| path.ends_with(".md"));
    named.map(str::to_owned).chain(docs).collect()
}

/// The targets of a document's links within the repository.
fn links_of(page: &str) -> Vec<String> {
    let prose: Vec<_> = page.split("```").step_by(2).collect();
    let prose = prose.concat();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let prose: Vec<_> = page.split("```").step_by(2).collect();
    let prose = prose.concat();
    let headings =
        prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let is_kept = |char: &char| char.is_alphanumeric() || "-_ ".contains(*char);
    headings.map(|heading| heading.chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

/// Collects the sources below a folder, by their paths.
fn collect_sources(folder: &Path, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_sources(&path, sources);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            sources.insert(path.display().to_string(), fs::read_to_string(&path).expect("it can be read"));
        }
    }
}

#[test]
fn every_alert_has_a_runbook_section_and_every_section_an_alert() {
    let alerts = alerts();
    let page = read("docs/alerts.md");
    let chapter = page.lines().skip_while(|line| *line != "## What each alert means").skip(1);
    let sections = chapter.take_while(|line| !line.starts_with("## ")).filter_map(|line| line.strip_prefix("### "));

    let mut names: Vec<_> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    let mut documented: Vec<_> = sections.collect();

    names.sort_unstable();
    documented.sort_unstable();
    assert!(!names.is_empty());
    assert_eq!(names, documented);
    for (name, runbook) in &alerts {
        assert_eq!(*runbook, format!("docs/alerts.md#{}", name.to_lowercase()));
    }
}

#[test]
fn script_settings_shown_in_the_documents_are_accepted() {
    let page = read("docs/troubleshooting.md");
    let is_settings = |code: &str| code.starts_with("\"settings\": {");
    let shown: Vec<_> = code_spans(&page).map(|(code, _)| code.to_owned()).filter(|code| is_settings(code)).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("night.json");

    assert!(shown.len() > 1, "{shown:?}");
    for settings in shown {
        fs::write(&file, format!("{{\"companions\": [], \"events\": [], {settings}}}")).expect("a file");
        let mut replay = std::process::Command::new(env!("CARGO_BIN_EXE_tertulia"));
        let ended = replay.arg("replay").arg(&file).current_dir(folder.path()).env_clear().output().expect("it runs");
        assert!(ended.status.success(), "{settings}: {ended:?}");
    }
}

#[test]
fn the_service_is_not_restarted_after_errors_that_need_a_person() {
    let service = unit("deploy/tertulia.service");

    assert_eq!(service["Restart"], "on-failure");
    assert_eq!(service["RestartPreventExitStatus"], format!("{EXIT_USAGE} {EXIT_STORE}"));
}

#[test]
fn the_service_and_the_container_have_time_to_stop() {
    let drain = find(&settings(), "server.drain_secs").and_then(|value| value.as_float()).expect("seconds");
    // The ten seconds are for the actor tree and then the runtime.
    let needed = drain + 10.0;

    let service: f64 = unit("deploy/tertulia.service")["TimeoutStopSec"].parse().expect("seconds");
    let page = read("docs/install.md");
    let container: f64 =
        page.split("--stop-timeout ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("seconds");

    assert!(service > needed && container > needed, "{service}, {container}");
}

#[test]
fn the_build_context_contains_what_the_dockerfile_copies() {
    let ignored = read("deploy/Dockerfile.dockerignore");
    let sent: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();

    let mut copied = Vec::new();
    for line in read("deploy/Dockerfile").lines().filter_map(|line| line.strip_prefix("COPY ").map(str::to_owned)) {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        if !line.starts_with("--from") {
            copied.extend_from_slice(&words[..words.len() - 1]);
        }
    }

    // The binary is there in an unpacked release only.
    assert!(copied.iter().all(|path| path == "tertulia" || root().join(path).exists()), "{copied:?}");
    copied.sort();
    let mut sent = sent;
    sent.sort_unstable();
    assert_eq!(copied, sent);
}

/// The alerts of `dashboards/alerts.yaml`, each with the URL of its runbook.
fn alerts() -> Vec<(String, String)> {
    let documents = YamlLoader::load_from_str(&read("dashboards/alerts.yaml")).expect("YAML");
    let groups = documents[0]["groups"].as_vec().expect("groups");
    let rules = groups.iter().flat_map(|group| group["rules"].as_vec().expect("rules"));
    let text = |value: &Yaml| value.as_str().unwrap_or_default().to_owned();
    let alerts = rules.filter(|rule| !rule["alert"].is_badvalue());
    alerts.map(|rule| (text(&rule["alert"]), text(&rule["annotations"]["runbook_url"]))).collect()
}

/// The settings of `config/default.toml`, with the keys that are commented out there.
fn settings() -> BTreeMap<String, Value> {
    let is_key = |rest: &str| {
        rest.split_once(" = ")
            .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|char| char.is_ascii_lowercase() || char == '_'))
    };
    let text = read("config/default.toml");
    let lines: Vec<_> = text.lines().map(|line| line.strip_prefix("# ").filter(|rest| is_key(rest)).unwrap_or(line)).collect();
    toml::from_str(&lines.join("\n")).expect("TOML")
}

fn find<'a>(settings: &'a BTreeMap<String, Value>, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let section = settings.get(keys.next()?)?;
    keys.try_fold(section, |value, key| value.get(key))
}

/// The text of each code span, and the rest of the line after it. Code blocks are left out.
fn code_spans(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_block = false;
    let lines = page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    lines.flat_map(|line| {
        let bounds: Vec<_> = line.match_indices('`').map(|(at, _)| at).collect();
        let spans: Vec<_> = bounds.chunks_exact(2).map(|pair| (&line[pair[0] + 1..pair[1]], &line[pair[1] + 1..])).collect();
        spans
    })
}

/// Reads the number from ` (1,024; …)`.
fn number_in_parentheses(after: &str) -> Option<f64> {
    let inside = after.strip_prefix(" (")?;
    let end = inside.find(|char: char| !char.is_ascii_digit() && !",.".contains(char))?;
    inside[..end].replace(',', "").parse().ok()
}

/// The keys of a unit's section `[Service]`. Of a repeated key, the last value counts.
fn unit(path: &str) -> BTreeMap<String, String> {
    let text = read(path);
    let service = text.lines().skip_while(|line| *line != "[Service]").skip(1).take_while(|line| !line.starts_with('['));
    service
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect()
}

/// With CARGO_TARGET_DIR set, `target/debug` is empty.
#[test]
fn no_script_assumes_the_target_folder_of_cargo() {
    let scripts = fs::read_dir(root().join(".ci")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let scripts: Vec<_> = scripts.map(|path| (fs::read_to_string(&path).expect("text"), path)).collect();

    let wrong = scripts.iter().filter(|(text, _)| ["target/debug", "target/release"].iter().any(|folder| text.contains(folder)));

    assert!(scripts.len() > 3);
    assert_eq!(wrong.map(|(_, path)| path.display().to_string()).collect::<Vec<_>>(), [""; 0]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
