use std::fs;

use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;

use super::gate::ForeignBots;
use super::*;

mod companions;
mod documented;
mod literally;
mod models;
mod personas;
mod spoken;
mod talking;

#[test]
fn the_built_in_settings_are_valid() {
    let loaded = Folder::empty().load().expect("nothing is wrong");

    assert_eq!(loaded.settings.gate.max_buffer, 200);
    assert_eq!(loaded.settings.gate.foreign_bots, ForeignBots::Ignore);
    assert_eq!(loaded.settings.gate.stale_after(), Duration::from_secs(600));
    assert_eq!(&*loaded.settings.console.rooms[0].id, "lobby");
    assert_eq!(loaded.settings.console.rooms[0].channel().as_str(), "console:lobby");
    assert_eq!(loaded.sources, ["built-in defaults"]);
}

#[test]
fn a_variable_with_a_single_underscore_is_noted_with_a_suggestion() {
    let folder = Folder::empty();
    let folder = folder.variable("TERTULIA_GATE__MAX_BUFFER", "7").variable("TERTULIA_TURN_TAKING_MAX_TURNS", "7");
    let folder = folder.variable("TERTULIA_MODELS_SIDE_API_KEY", "x").variable("TERTULIA_SERVER__PORT", "7");
    let others = [("TERTULIA_PROFILE", "default"), ("TERTULIA_GATEWAY", "x"), ("TERTULIA_", ""), ("TERTULIA_ÜÜ_X", "")];
    let folder = others.into_iter().fold(folder, |folder, (name, value)| folder.variable(name, value));

    let loaded = folder.load().expect("nothing is wrong");

    let note = "is ignored: two underscores must follow TERTULIA and each name of a section";
    let mut expected = [
        format!("TERTULIA_GATE__MAX_BUFFER {note}; did you mean TERTULIA__GATE__MAX_BUFFER?"),
        format!("TERTULIA_MODELS_SIDE_API_KEY {note}; did you mean TERTULIA__MODELS__SIDE__API_KEY?"),
        format!("TERTULIA_SERVER__PORT {note}"),
        format!("TERTULIA_TURN_TAKING_MAX_TURNS {note}; did you mean TERTULIA__TURN_TAKING__MAX_TURNS?"),
    ];
    expected.sort();
    let mut notes = loaded.notes.clone();
    notes.sort();
    assert_eq!(notes, expected);
    assert_eq!(loaded.settings.gate.max_buffer, 200);
}

#[test]
fn each_source_overrides_earlier_ones() {
    let folder = Folder::with(&[
        ("default.toml", "[gate]\nmax_buffer = 1\nevaluations_per_hour = 1\naddresses_per_minute = 1\n"),
        ("night.toml", "[gate]\nevaluations_per_hour = 2\naddresses_per_minute = 2\n"),
    ]);

    let loaded = folder.profile("night").variable("TERTULIA__GATE__ADDRESSES_PER_MINUTE", "3").load().expect("nothing is wrong");

    let gate = &loaded.settings.gate;
    assert_eq!((gate.max_buffer, gate.evaluations_per_hour, gate.addresses_per_minute), (1, 2, 3));
    assert_eq!(gate.guild_evaluations_per_hour, 5000);
    assert_eq!(loaded.sources.len(), 4);
    assert_eq!(loaded.sources[3], "environment (TERTULIA__GATE__ADDRESSES_PER_MINUTE)");
}

/// The environment has texts, which have to become numbers of every type that a setting has.
#[test]
fn every_plain_setting_can_come_from_the_environment() {
    fn plain(table: &toml::Table, name: &str, found: &mut Vec<(String, String)>) {
        for (key, value) in table {
            let name = format!("{name}__{}", key.to_uppercase());
            match value {
                toml::Value::Table(table) => plain(table, &name, found),
                toml::Value::String(text) => found.push((name, text.clone())),
                toml::Value::Array(_) => {}
                value => found.push((name, value.to_string())),
            }
        }
    }
    let mut found = Vec::new();
    plain(&toml::from_str(include_str!("../../config/default.toml")).unwrap(), "TERTULIA", &mut found);

    let folder = found.iter().fold(Folder::empty(), |folder, (name, value)| folder.variable(name, value));

    assert!(found.len() > 100);
    folder.load().expect("texts are read as what each setting has");
}

#[test]
fn the_time_zone_is_that_of_the_guild_or_of_the_settings_or_of_the_machine_or_utc() {
    let own = "[prompt]\ntime_zone = \"+02:00\"\nguild_time_zones = { \"far\" = \"-05:00\" }\n";
    let zone = |folder: &Folder, guild: &str| {
        let zone = folder.load().expect("nothing is wrong").settings.prompt.zone_of(&guild.into()).clone();
        zone.to_offset(jiff::Timestamp::UNIX_EPOCH).seconds() / 3_600
    };

    let configured = Folder::with(&[("default.toml", own)]).variable("TZ", "+09:00");
    assert_eq!([zone(&configured, "far"), zone(&configured, "home")], [-5, 2]);
    assert_eq!(zone(&Folder::with(&[]).variable("TZ", "+09:00"), "home"), 9);
    assert_eq!(zone(&Folder::with(&[]).variable("TZ", ""), "home"), 0);
    let file = tempfile::NamedTempFile::new().unwrap();
    // RFC 9636: a file of version 1 with one type of local time.
    let header = [&b"TZif"[..], &[0; 32], &[0, 0, 0, 1, 0, 0, 0, 4]].concat();
    fs::write(&file, [&header[..], &(9 * 3_600_i32).to_be_bytes(), &[0, 0], b"JST\0"].concat()).unwrap();
    let path = format!(":{}", file.path().display());
    assert_eq!(zone(&Folder::with(&[]).variable("TZ", &path), "home"), 9);
    let unknown = Folder::with(&[]).variable("TZ", "Mars/Olympus");
    assert_eq!(zone(&unknown, "home"), 0);
    assert!(unknown.load().unwrap().notes.iter().any(|note| note.starts_with("TZ: ")));
    let problems = Folder::with(&[("default.toml", "[prompt]\ntime_zone = \"Mars\"\n")]).problems();
    assert!(
        problems[0].starts_with("default.toml:2: prompt.time_zone") && problems[0].contains("is no time zone"),
        "{problems:?}"
    );
}

#[test]
fn what_is_wrong_in_a_file_is_reported_with_its_line_and_what_is_known() {
    for (what, written, expected) in [
        ("an unknown key", "# mine\n[gate]\nmax_bufer = 5\n", "3: gate.max_bufer is not a known key; did you mean max_buffer?"),
        ("an unknown section", "\n[gaet]\nmax_buffer = 5\n", "2: gaet is not a known key; did you mean gate?"),
        (
            "an unknown key that is like no other",
            "[storage]\nzzz = 1\n",
            "2: storage.zzz is not a known key; known keys: engine, url, url_file, path, retention_days, guild_retention_days, \
             room_files_mb, backup_every, backups_kept, compact_after_days, compact_hour",
        ),
        ("a quoted key, which is no path", "\"gate.max_buffer\" = 7\n", "1: gate.max_buffer is not a known key"),
        ("a flag for a number", "[gate]\nmax_buffer = true\n", "2: gate.max_buffer = true is not a whole number from 0 up"),
        (
            "a fraction",
            "[gate]\nevaluations_per_hour = 7.9\n",
            "2: gate.evaluations_per_hour = 7.9 is not a whole number from 0 to 4294967295",
        ),
        (
            "a text for a number",
            "[gate]\naddresses_per_minute = \"1\"\n",
            "2: gate.addresses_per_minute = \"1\" is not a whole number from 0 to 4294967295",
        ),
        (
            "a number for a flag",
            "[gate]\nskip_when_other_addressed = 1\n",
            "2: gate.skip_when_other_addressed = 1 is not true or false",
        ),
        (
            "a negative number",
            "[gate]\nguild_statements_per_day = -1\n",
            "2: gate.guild_statements_per_day = -1 is not a whole number from 0 to 4294967295",
        ),
        ("a date for a text", "[storage]\npath = 1979-05-27\n", "2: storage.path = 1979-05-27 is not a text in quotes"),
        ("a value out of range", "[gate]\nmax_buffer = 0\n", "2: gate.max_buffer is 0, must be from 1 to 10000"),
        (
            "infinity",
            "[gate]\nstale_after_secs = inf\n[console]\nrooms = []\n",
            "2: gate.stale_after_secs is inf, must be from 0 to 31536000",
        ),
        ("no TOML", "[gate]\nmax_buffer = \n", "2: "),
    ] {
        let problems = Folder::with(&[("default.toml", written)]).problems();

        assert_eq!(problems.len(), 1, "{what}: {problems:?}");
        assert!(problems[0].starts_with(&format!("default.toml:{expected}")), "{what}: {problems:?}");
    }
}

#[test]
fn what_is_wrong_in_a_variable_is_reported_with_its_name() {
    for (what, name, value, expected) in [
        (
            "guests",
            "TOOLS__RIGHTS__ROLL__ALLOW",
            "guests",
            "tools.rights.roll.allow = \"guests\" is not one of everyone, roles, operators, nobody; guests of the page count under everyone",
        ),
        ("an unknown value", "GATE__FOREIGN_BOTS", "some", "gate.foreign_bots = \"some\" is not one of ignore, mentions, all"),
        (
            "an unknown choice",
            "GATE__DIRECT_ADDRESS",
            "answer",
            "gate.direct_address = \"answer\" is not one of ask_first, answer_or_pass",
        ),
        ("an unknown way", "TURN_TAKING__VOTING", "all", "turn_taking.voting = \"all\" is not one of each, together"),
        ("an unknown key", "GATE__MAX_BUFER", "7", "gate.max_bufer is not a known key; did you mean max_buffer?"),
        ("a text for a number", "GATE__MAX_BUFFER", "many", "gate.max_buffer = \"many\" is not a whole number from 0 up"),
        ("a value out of range", "GATE__STALE_AFTER_SECS", "-1", "gate.stale_after_secs is -1, must be from 0 to 31536000"),
        (
            "an unknown key in an item of a list",
            "CONSOLE__ROOMS",
            r#"[{ id = "den", guidl = "home", companions = [] }]"#,
            "console.rooms[0].guidl is not a known key; did you mean guild?",
        ),
        ("a dot in its name", "GATE.MAX_BUFFER", "7", "is not named TERTULIA__SECTION__KEY"),
        ("an empty section", "__GATE", "7", "is not named TERTULIA__SECTION__KEY"),
    ] {
        let problems = Folder::empty().variable(&format!("TERTULIA__{name}"), value).problems();

        assert_eq!(problems.len(), 1, "{what}: {problems:?}");
        assert!(problems[0].starts_with(&format!("TERTULIA__{name}")) && problems[0].contains(expected), "{what}: {problems:?}");
    }
}

#[test]
fn a_profile_cannot_name_a_file_outside_the_folder() {
    let folder = Folder::empty().profile("../secret");

    assert_eq!(folder.problems(), [r#"profile "../secret" is not a name of 1 to 64 letters, digits, _ or -"#]);
}

#[test]
fn a_selected_profile_must_exist() {
    let folder = Folder::empty().profile("night");

    let problems = folder.problems();

    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("night.toml: does not exist, but the profile night is selected"), "{problems:?}");
}

#[test]
fn a_named_folder_must_exist() {
    let mut folder = Folder::empty();
    folder.sources.folder = folder.dir.path().join("gone");
    folder.sources.folder_was_named = true;

    assert_eq!(folder.problems(), ["gone: is not a folder; --config must name the folder of default.toml"]);
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_reported() {
    let folder = Folder::empty();
    std::os::unix::fs::symlink("nowhere.toml", folder.dir.path().join("default.toml")).expect("a link");

    let problems = folder.problems();

    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("default.toml: cannot be read: "), "{problems:?}");
}

#[test]
fn a_secret_in_a_settings_file_is_rejected_with_its_line_and_not_shown() {
    let written = r#"
        [server]
        admin_token = "AbCdEf-0123456789"
        [models.main]
        base_url = "http://127.0.0.1:1"
        model = "m"
        api_key = "AbCdEf"
    "#;

    let problems = Folder::with(&[("default.toml", written)]).problems();

    let [token, key] = &problems[..] else { panic!("{problems:?}") };
    assert!(token.starts_with("default.toml:3: server.admin_token is a secret"), "{token}");
    assert!(key.starts_with("default.toml:7: models.main.api_key is a secret"), "{key}");
    assert!(key.contains("TERTULIA__MODELS__MAIN__API_KEY") && key.contains("models.main.api_key_file"), "{key}");
    assert!(!problems.concat().contains("AbCdEf"), "{problems:?}");
}

#[test]
fn everything_that_keeps_a_server_from_starting_is_reported_at_once() {
    let written = r#"
        [server]
        admin_token_file = "/nowhere/token"
        [storage]
        path = "/dev/null"
        [models.main]
        base_url = "http://127.0.0.1:1"
        model = "m"
        api_key_file = "/nowhere/key"
        [speech]
        recognition = ["deepgram"]
        synthesis = "elevenlabs"
        [speech.services.deepgram]
        [speech.services.elevenlabs]
        [speech.services.flux]
    "#;
    let loaded = Folder::with(&[("default.toml", written)]).load().expect("each value is valid on its own");

    let messages: Vec<_> = loaded.serve().unwrap_err().0.into_iter().map(|problem| problem.message).collect();

    let [token, key, hears, speaks, path] = &messages[..] else { panic!("{messages:?}") };
    assert!(token.starts_with("server.admin_token_file /nowhere/token cannot be read"), "{token}");
    assert!(key.starts_with("models.main.api_key_file /nowhere/key cannot be read"), "{key}");
    assert_eq!(
        hears,
        "speech.services.deepgram.api_key is missing, and https://api.deepgram.com/ needs one; \
         set TERTULIA__SPEECH__SERVICES__DEEPGRAM__API_KEY, or set api_key_file"
    );
    assert!(speaks.starts_with("speech.services.elevenlabs.api_key is missing"), "{speaks}");
    assert_eq!(path, "storage.path is a file; name a folder");
    assert_eq!(Folder::empty().load().expect("nothing is wrong").serve(), Ok(()));
}

#[test]
fn a_whole_number_is_accepted_for_a_fraction() {
    let folder = Folder::with(&[("default.toml", "[gate]\nstale_after_secs = 7\n")]);

    let loaded = folder.load().expect("nothing is wrong");

    assert_eq!(loaded.settings.gate.stale_after(), Duration::from_secs(7));
}

#[test]
fn a_variable_is_parsed_as_the_type_of_its_key() {
    let folder = Folder::empty()
        .variable("TERTULIA__TELEMETRY__SERVICE_NAME", "2024")
        .variable("TERTULIA__TELEMETRY__CAPTURE_CONTENT", "true")
        .variable("TERTULIA__GATE__STALE_AFTER_SECS", "1.5")
        .variable("TERTULIA__STORAGE__PATH", "")
        .variable("TERTULIA__CONSOLE__ROOMS", r#"[{ id = "den", guild = "home", companions = ["bruno"] }]"#);

    let settings = folder.load().expect("nothing is wrong").settings;

    assert_eq!(settings.telemetry.service_name, "2024");
    assert!(settings.telemetry.capture_content);
    assert_eq!(settings.gate.stale_after(), Duration::from_millis(1500));
    assert_eq!(settings.storage.path.as_os_str(), "data");
    assert_eq!(settings.console.rooms[0].companions[0].as_str(), "bruno");
}

#[test]
fn all_problems_of_all_files_are_reported_at_once() {
    let folder = Folder::with(&[
        ("default.toml", "[gate]\nmax_buffer = \"x\"\n[telemetry]\nlog_fromat = \"json\"\n"),
        ("night.toml", "[gate]\nforeign_bots = \"none\"\n"),
        ("companions/mira.toml", "interjection = 3\nchatiness = \"x\"\n"),
        ("companions/zed.toml", "text_lull_timeout = -1\nvoice_lull_timeout = -2\n"),
        ("companions/Not An Id.toml", ""),
    ])
    .profile("night")
    .variable("TERTULIA__GATE__MAX_BUFFER", "x");

    let problems = folder.problems();

    let places: Vec<_> = problems.iter().map(|problem| problem.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(
        places,
        [
            "default.toml:2",
            "default.toml:4",
            "night.toml:2",
            "TERTULIA__GATE__MAX_BUFFER",
            "companions/Not An Id.toml",
            "companions/mira.toml:1",
            "companions/mira.toml:2",
            "companions/zed.toml:1",
            "companions/zed.toml:2",
        ],
        "{problems:#?}"
    );
}

#[test]
fn an_invalid_url_is_reported_once_and_hides_no_other_problem() {
    let written = |role: &str| {
        format!(
            "[models.{role}]\nbase_url = \"127.0.0.1:11434/v1\"\nmodel = \"m\"\napi_key_file = \"key\"\ninput_price = -1.0\noutput_price = 1.0\n\
             timeout_secs = 0\n"
        )
    };
    let both = Folder::with(&[("default.toml", &format!("{}{}", written("side"), written("main")))]);
    let overridden = Folder::with(&[("default.toml", "[models.main]\nbase_url = \"nowhere\"\nmodel = \"m\"\n")])
        .variable("TERTULIA__MODELS__MAIN__BASE_URL", "ftp://host");

    let keys = |problems: Vec<String>| -> Vec<String> {
        problems.iter().map(|problem| problem.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    };

    let expected: Vec<_> = [("side", 2), ("main", 9)]
        .into_iter()
        .flat_map(|(role, line)| {
            let keys = [(0, "base_url"), (3, "input_price"), (5, "timeout_secs")];
            keys.map(|(offset, key)| format!("default.toml:{}: models.{role}.{key}", line + offset))
        })
        .collect();
    assert_eq!(keys(both.problems()), expected);
    let places = ["TERTULIA__MODELS__MAIN__BASE_URL: models.main.base_url", "default.toml:2: models.main.base_url"];
    assert_eq!(keys(overridden.problems()), places, "each place with an invalid value is named");
}

#[test]
fn a_value_that_may_be_a_secret_is_never_shown() {
    let path = mismatch::Path::of("server.admin_token");

    let mismatch = mismatch::Mismatch { path, kind: mismatch::Kind::Not("a string".to_owned()) };

    assert_eq!(mismatch.message(Some("12345")), "server.admin_token is not a text in quotes");
}

#[test]
fn a_script_overrides_the_built_in_settings() {
    let settings = Settings::overlay(json!({ "gate": { "max_buffer": 3, "foreign_bots": "all", "stale_after_secs": null } }))
        .expect("nothing is wrong");

    assert_eq!((settings.gate.max_buffer, settings.gate.foreign_bots), (3, ForeignBots::All));
    assert_eq!(settings.gate.stale_after(), Duration::from_secs(600));
}

#[test]
fn a_script_is_read_as_strictly_as_a_file() {
    let problems =
        Settings::overlay(json!({ "gate": { "max_bufer": 3, "max_buffer": true, "stale_after_secs": -1 }, "nothing": {} }));

    let problems: Vec<_> = problems.expect_err("four keys are wrong").0.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4);
    assert_eq!(problems[0], "settings.gate.max_bufer is not a known key; did you mean max_buffer?");
    assert_eq!(problems[1], "settings.gate.max_buffer = true is not a whole number from 0 up");
    assert!(problems[2].starts_with("settings.nothing is not a known key"), "{problems:#?}");
    assert_eq!(problems[3], "settings.gate.stale_after_secs is -1, must be from 0 to 31536000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn loading_never_panics(text in "[a-z\\[\\]._=\"{} \n0-9]{0,60}", name in "[A-Z_\\[\\].-]{0,20}", value in ".{0,20}") {
        let folder = Folder::with(&[("default.toml", &text), ("companions/mira.toml", &text)]);

        let _ = folder.variable(&format!("TERTULIA__{name}"), &value).load();
    }
}

/// A folder of settings, and the other sources.
struct Folder {
    dir: TempDir,
    sources: Sources,
}

impl Folder {
    fn empty() -> Self {
        Self::with(&[])
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("its parent is in the folder")).expect("a folder in it");
            fs::write(path, text).expect("a file");
        }
        let folder = dir.path().to_owned();
        Self { dir, sources: Sources { folder, folder_was_named: false, profile: None, environment: Vec::new() } }
    }

    fn profile(mut self, profile: &str) -> Self {
        self.sources.profile = Some(profile.to_owned());
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> Result<Loaded, Problems> {
        load(&self.sources).and_then(Loaded::complete)
    }

    /// The problems, with places relative to the folder.
    fn problems(&self) -> Vec<String> {
        let folder = format!("{}/", self.dir.path().display());
        let problems = self.load().expect_err("something is wrong");
        problems.0.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
    }
}
