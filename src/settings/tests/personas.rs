//! Companions in folders, and personas that are too long.

use std::fs;
use std::os::unix::fs::symlink;

use super::Folder;

const KEYS: (&str, &str) = ("companions/mira/companion.toml", "aliases = [\"mi\"]\n");

#[test]
fn a_folder_is_a_companion_whose_persona_is_its_files_in_byte_order() {
    let folder = Folder::with(&[
        KEYS,
        ("companions/mira/b.md", "\u{feff}Then b.\n"),
        ("companions/mira/B.md", "First B.\n\nStill B.\n\n"),
        ("companions/mira/10.md", "Ten.\n"),
        ("companions/mira/empty.md", "\n"),
        ("companions/mira/memory/self/1.md", "Last."),
        ("companions/mira/.hidden.md", "never"),
        ("companions/mira/notes.txt", "never"),
        ("companions/zed.toml", "persona = \"You are Zed.\"\n"),
        ("companions/fam/companion.toml", ""),
        ("companions/fam/memory/self/self.md", "You are Fam."),
        ("companions/.git/HEAD.md", "never"),
        ("companions/pictures/mira.png", "never"),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    let ids: Vec<_> = loaded.companions.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["fam", "mira", "zed"]);
    assert_eq!(&*loaded.companions[&"fam".into()].persona, "You are Fam.");
    let mira = &loaded.companions[&"mira".into()];
    assert_eq!((&*mira.name, &*mira.aliases[0]), ("Mira", "mi"));
    assert_eq!(&*mira.persona, "Ten.\n\nFirst B.\n\nStill B.\n\nThen b.\n\nLast.");
}

#[test]
fn a_folder_without_persona_files_has_the_persona_of_its_keys_or_the_default() {
    let folder = Folder::with(&[
        ("companions/mira/companion.toml", "persona = \"You are Mira.\"\n"),
        ("companions/zed/companion.toml", ""),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    assert_eq!(&*loaded.companions[&"mira".into()].persona, "You are Mira.");
    assert_eq!(loaded.companions[&"zed".into()].persona, loaded.settings.companion_defaults.persona);
}

#[test]
fn a_file_and_a_folder_of_one_id_are_reported_together() {
    let folder = Folder::with(&[KEYS, ("companions/mira.toml", "")]);

    let problems = folder.problems();

    assert_eq!(problems, ["companions/mira.toml: and the folder companions/mira are both the companion mira; remove one"]);
}

#[test]
fn files_of_a_folder_that_cannot_be_used_are_named() {
    let folder = Folder::with(&[
        ("companions/both/companion.toml", "name = \"B\"\npersona = \"You are B.\"\n"),
        ("companions/both/self.md", "You are both."),
        ("companions/keyless/self.md", "You are keyless."),
        ("companions/named/companion.toml", "id = \"other\"\n"),
        ("companions/not an id/companion.toml", ""),
        ("companions/odd/companion.toml", ""),
        ("companions/odd/ok.md", "You are odd."),
    ]);
    let odd = folder.dir.path().join("companions/odd");
    fs::write(odd.join("bytes.md"), b"\xff\xfe").expect("a file");
    fs::create_dir(odd.join("folder.md")).expect("a folder");
    symlink("nowhere", odd.join("link.md")).expect("a link");
    symlink("nowhere", folder.dir.path().join("companions/gone")).expect("a link");

    let problems = folder.problems();

    for expected in [
        "companions/both/companion.toml:2: persona is set, but the folder has persona files (*.md), too; remove one of the two",
        "companions/keyless/companion.toml: does not exist, but its folder has persona files (*.md); create it, it may be empty, or rename the \
         folder to .keyless",
        "companions/named/companion.toml:1: id = \"other\", but the file or folder is named named; remove id",
        "companions/not an id: is not named after an id; name it with 1 to 32 letters, digits, _ or -",
        "companions/odd/bytes.md: is not UTF-8 text",
        "companions/odd/folder.md: is not a regular file",
        "companions/odd/link.md: cannot be read: No such file",
        "companions/gone: cannot be read: No such file",
    ] {
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{expected}\n{problems:#?}");
    }
    assert_eq!(problems.len(), 8, "{problems:#?}");
}

#[test]
fn links_to_persona_files_and_folders_are_followed() {
    let folder = Folder::with(&[("elsewhere/companion.toml", ""), ("words.md", "You are linked.")]);
    let elsewhere = folder.dir.path().join("elsewhere");
    symlink(folder.dir.path().join("words.md"), elsewhere.join("self.md")).expect("a link");
    fs::create_dir(folder.dir.path().join("companions")).expect("a folder");
    symlink(&elsewhere, folder.dir.path().join("companions/mira")).expect("a link");

    let loaded = folder.load().expect("nothing is wrong");

    assert_eq!(&*loaded.companions[&"mira".into()].persona, "You are linked.");
}

#[test]
fn the_number_and_the_size_of_persona_files_are_limited() {
    let files = |number: usize, bytes: usize| {
        let names: Vec<_> = (0..number).map(|n| format!("companions/mira/{n:03}.md")).collect();
        let text = "x".repeat(bytes);
        let files = names.iter().map(|name| (name.as_str(), text.as_str())).chain([KEYS]);
        Folder::with(&files.collect::<Vec<_>>())
    };

    assert!(files(64, 254).load().is_ok());
    assert_eq!(files(65, 1).problems(), ["companions/mira: has 65 persona files (*.md), at most 64 are allowed"]);
    assert_eq!(
        files(2, 8192).problems(),
        ["companions/mira: has 16386 bytes of persona files (*.md) together, at most 16384 are allowed"]
    );
}

#[test]
fn a_persona_or_a_brief_that_does_not_fit_is_reported_with_figures() {
    let file = format!("persona = \"{}\"\nbrief = \"{}\"\n", "x".repeat(16_000), "y".repeat(4_000));
    let folder = Folder::with(&[
        ("default.toml", "[prompt]\ndecision_tokens = 1500\nstatement_tokens = 3000\n"),
        ("companions/mira.toml", &file),
    ]);

    let problems = folder.problems();

    let figures =
        |line: usize, key: &str, tokens: usize| format!("companions/mira.toml:{line}: {key} has about {tokens} tokens, at most ");
    assert!(problems[0].starts_with(&figures(1, "persona", 4_000)), "{problems:#?}");
    assert!(problems[0].ends_with("fit into a statement; shorten it, or raise prompt.statement_tokens, which is 3000"));
    assert!(problems[1].starts_with(&figures(2, "brief", 1_000)), "{problems:#?}");
    assert!(problems[1].ends_with("fit into a decision; shorten it, or raise prompt.decision_tokens, which is 1500"));
}

#[test]
fn the_longest_persona_fits_into_statements_of_the_default_size() {
    let file = format!("persona = \"{}\"\n", "x".repeat(16 * 1024));

    assert!(Folder::with(&[("companions/mira.toml", &file)]).load().is_ok());
}

#[test]
fn personas_that_decisions_do_not_show_in_full_are_noted_with_figures() {
    let long = format!("persona = \"{}\"\n", "x".repeat(8_000));
    let files = [
        ("companions/ann.toml", long.clone()),
        ("companions/bea.toml", format!("{long}brief = \"{}\"\n", "y".repeat(400))),
        ("companions/cat.toml", "brief = \"You are a cat.\"\n".to_owned()),
        ("companions/dan.toml", String::new()),
    ];
    let notes = |more: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| (*name, text.as_str())).chain(more.iter().copied());
        let notes = Folder::with(&files.collect::<Vec<_>>()).load().expect("nothing is wrong").notes;
        notes.into_iter().filter(|note| note.starts_with("companion ")).collect::<Vec<_>>()
    };

    let without_model = notes(&[]);
    let model = "[models.side]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    let with_model = notes(&[("default.toml", model)]);

    assert_eq!(without_model.len(), 3, "{without_model:#?}");
    for note in &without_model[..2] {
        assert!(note.contains("its persona of about 2000 tokens does not fit into decisions (1"), "{note}");
        assert!(note.contains("from prompt.decision_tokens = 3000"), "{note}");
    }
    assert!(
        without_model[0].contains("decisions show its beginning, because no side model is configured"),
        "{}",
        without_model[0]
    );
    assert!(
        with_model[0].contains("decisions show a brief that the side model makes, and its beginning until then"),
        "{}",
        with_model[0]
    );
    assert!(without_model[1].ends_with("decisions show its brief of about 100 tokens"), "{}", without_model[1]);
    assert!(without_model[2].starts_with("companion cat: its brief is not used"), "{}", without_model[2]);
}
