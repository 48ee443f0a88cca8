//! Targets for settings: files and the environment.

use std::fs;

use super::rules::{is_bounded, parts, text, texts};
use crate::settings::{Loaded, Problems, Sources, load};

const DEFAULTS: &str = include_str!("../../config/default.toml");

pub(super) fn files() -> Vec<Vec<u8>> {
    let mut files = texts(&[
        "[gate]\nmax_buffer = 3\nskip_when_other_addressed = false\n[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"a-token\"\n",
        "[[console.rooms]]\nid = \"hall\"\nguild = \"home\"\ncompanions = [\"aria\"]\n",
        "models.side = { base_url = \"http://127.0.0.1:1/v1\", model = \"m\", timeout_secs = 9.5 }\n[turn_taking]\nturn_delay_secs = 1\n",
        "[models.large]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nmax_concurrent = 3\n[models]\nfurther = 1\n",
    ]);
    files.push(DEFAULTS.as_bytes().to_vec());
    files
}

pub(super) fn companions() -> Vec<Vec<u8>> {
    let mut files = texts(&[
        "id = \"mira\"\nname = \"Mira\"\naliases = [\"m\", \"Mira Vale\"]\ninterjection = \"eager\"\ntext_lull_timeout = 9.5\n",
        "[model]\nmain = \"side\"\nside = \"large\"\n",
    ]);
    files.push(include_bytes!("../../config/companions/aria.toml").to_vec());
    files
}

pub(super) fn variables() -> Vec<Vec<u8>> {
    let mut variables = texts(&[
        "TERTULIA__SERVER__LISTEN=127.0.0.1:0\u{1f}TERTULIA__GATE__MAX_BUFFER=7",
        "TERTULIA__MODELS__SIDE__API_KEY=secret\u{1f}tertulia__gate__foreign_bots=all",
        "TERTULIA__MODELS__LARGE__MODEL=m\u{1f}TERTULIA__MODELS__SMALL={ model = \"m\" }",
        "TERTULIA__CONSOLE__ROOMS=[]\u{1f}TERTULIA__A__B__C__D=1\u{1f}TERTULIA__=x",
    ]);
    // This input once overflowed the stack.
    variables.push(format!("TERTULIA__{}B=1", "A__".repeat(20_000)).into_bytes());
    variables
}

pub(super) fn file(bytes: &[u8]) {
    with_files(&[("default.toml", bytes)], &[]);
}

pub(super) fn companion(bytes: &[u8]) {
    with_files(&[("companions/mira.toml", bytes)], &[]);
}

pub(super) fn environment(bytes: &[u8]) {
    let all = text(bytes);
    let variables: Vec<(String, String)> = parts(&all)
        .iter()
        .take(40)
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    with_files(&[], &variables);
}

fn with_files(files: &[(&str, &[u8])], environment: &[(String, String)]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    fs::create_dir(folder.path().join("companions")).expect("a subfolder can be created");
    if files.iter().all(|(name, _)| !name.starts_with("companions/")) {
        fs::remove_dir(folder.path().join("companions")).expect("the subfolder is empty");
    }
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file can be written");
    }
    let sources =
        Sources { folder: folder.path().to_owned(), folder_was_named: false, profile: None, environment: environment.to_vec() };

    match (load(&sources), load(&sources)) {
        (Ok(one), Ok(other)) => check_loaded(&one, &other),
        (Err(one), Err(other)) => {
            assert_eq!(one.to_string(), other.to_string(), "loading the same files twice gives different errors");
            check_problems(&one);
        }
        _ => panic!("loading the same files twice succeeds once and fails once"),
    }
}

fn check_loaded(one: &Loaded, other: &Loaded) {
    assert_eq!(format!("{:?}", one.companions), format!("{:?}", other.companions));
    assert!(one.companions.values().all(|companion| !companion.name.trim().is_empty()));
    assert!(one.companions.iter().all(|(id, companion)| *id == companion.id), "a companion has two ids");
    assert!(is_bounded(&format!("{:?}", one.notes), 10_000));
}

fn check_problems(problems: &Problems) {
    assert!(!problems.0.is_empty(), "an error without a problem");
    for problem in &problems.0 {
        let message = problem.to_string();
        assert!(!message.is_empty() && is_bounded(&message, 66_000), "a problem is empty or too long");
        assert!(!message.contains('\n'), "a problem has more than one line: {message}");
    }
}
