//! `tertulia check`: validates the settings, and shows the settings in force.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use serde_json::json;

use super::EXIT_USAGE;
use super::visible::{self, line};
use crate::adapters::tools::accepted_names;
use crate::domain::gate::MOST_JITTER;
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::server::has_store;
use crate::server::offline::kept_companions;
use crate::settings::companion::Companion;
use crate::settings::connection::Connection;
use crate::settings::models::{Models, Served};
use crate::settings::repetition::Judge;
use crate::settings::speech::Resolved;
use crate::settings::turn_taking::Voting;
use crate::settings::{Loaded, Origin, Overlay, Problem, Problems, Settings, Sources, load_with};

/// Loads the settings and prints a summary. Problems go to standard error, one per line.
pub fn run(sources: &Sources, json: bool) -> ExitCode {
    match with_kept(sources).and_then(Loaded::complete).and_then(|loaded| loaded.serve().map(|()| loaded)) {
        Ok(mut loaded) => {
            if let Err(problem) = use_connection(&mut loaded) {
                eprintln!("{}", line(&problem.to_string()));
                return ExitCode::from(EXIT_USAGE);
            }
            loaded.notes.extend(roomless(&loaded));
            loaded.notes.extend(stray_tools(&loaded));
            let summary = if json { visible::json(&format!("{:#}\n", as_json(&loaded))) } else { as_text(&loaded) };
            print(&summary)
        }
        Err(problems) => refuse(&problems, json),
    }
}

/// Loads the settings, and the companions in the store unless a server has it open.
fn with_kept(sources: &Sources) -> Result<Loaded, Problems> {
    let mut files_only = load_with(sources, &Overlay::new())?;
    let storage = &files_only.settings.storage;
    if !has_store(storage) {
        return files_only.known();
    }
    let Some(kept) = kept_companions(storage) else {
        let unknown = std::mem::take(&mut files_only.unknown);
        files_only.notes.extend(unknown.iter().map(|unknown| format!("{unknown}, unless it is kept in the store")));
        let note =
            "companions that are kept in the store are not listed, because the store cannot be read now; the page shows them";
        files_only.notes.push(note.to_owned());
        return Ok(files_only);
    };
    if kept.is_empty() {
        return files_only.known();
    }
    let mut loaded = load_with(sources, &kept).and_then(Loaded::known)?;
    let ids: Vec<_> = kept.keys().map(CompanionId::as_str).collect();
    loaded.notes.push(format!("kept in the store, and not in files: {}", ids.join(", ")));
    Ok(loaded)
}

/// Replaces the models of the settings by the model that was connected on the page, as the server does.
pub(super) fn use_connection(loaded: &mut Loaded) -> Result<(), Problem> {
    let data = &loaded.settings.storage.path;
    if fs::read_dir(data).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        let data = data.display();
        loaded.notes.push(format!(
            "what was set on the page is not shown, because this user may not read {data}: run this as the server's user"
        ));
        return Ok(());
    }
    let Some(connection) = Connection::read(data)? else { return Ok(()) };
    let file = data.join("connection.json");
    loaded.notes.push(format!(
        "the models were connected on the page, which takes the place of models.main and models.side ({})",
        file.display()
    ));
    let overruled = connection.overruled_by(&loaded.settings);
    if let Some(secs) = connection.timeout_secs {
        loaded.notes.push(format!("a time limit of {secs} s for decisions, and those that belong to it, were given there"));
    }
    if !overruled.is_empty() {
        loaded
            .notes
            .push(format!("limits that were given there are not used, because the settings set {}", overruled.join(", ")));
    }
    loaded.settings = connection.applied_to(&loaded.settings);
    Ok(())
}

/// A hint for each companion that is in no room of the settings.
fn roomless(loaded: &Loaded) -> Vec<String> {
    let Settings { console, discord, .. } = &loaded.settings;
    let named = |id| {
        console
            .rooms
            .iter()
            .flat_map(|room| &room.companions)
            .chain(discord.direct_companions.iter().flatten())
            .any(|named| named == id)
    };
    let roomless = loaded.companions.keys().filter(|id| !named(*id));
    roomless
        .map(|id| {
            format!(
                "companion {id}: no room of the settings names it; add it on the page, with /tertulia join, or in console.rooms"
            )
        })
        .collect()
}

/// A hint for each name of a tool that is not among the accepted ones of its server.
fn stray_tools(loaded: &Loaded) -> Vec<String> {
    let names = accepted_names(&loaded.settings.storage.path);
    let mut known = BTreeMap::<_, BTreeSet<_>>::new();
    for name in &names {
        known.entry(name.split_once("__").map_or("", |(server, _)| server)).or_default().insert(&**name);
    }
    super::tools::strays(loaded, &known)
}

/// Prints problems with settings to standard error, and with `json` to standard output, too. Returns the exit code.
pub(super) fn refuse(problems: &Problems, json: bool) -> ExitCode {
    if json {
        print(&visible::json(&format!("{:#}\n", json!({ "ok": false, "problems": problems.0 }))));
    }
    complain(problems)
}

/// Prints problems with settings to standard error, and returns the exit code.
pub fn complain(problems: &Problems) -> ExitCode {
    for problem in &problems.0 {
        eprintln!("{}", line(&problem.to_string()));
    }
    ExitCode::from(EXIT_USAGE)
}

/// A summary of the settings for people.
pub fn as_text(loaded: &Loaded) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_text(&mut text, loaded);
    text
}

/// A summary of the settings for programs.
pub fn as_json(loaded: &Loaded) -> serde_json::Value {
    let rooms: Vec<_> = loaded
        .settings
        .console
        .rooms
        .iter()
        .map(|room| json!({ "id": room.id, "guild": room.guild, "companions": room.companions }))
        .collect();
    let companions: Vec<_> = loaded.companions.values().collect();
    json!({
        "ok": true,
        "sources": loaded.sources,
        "companions_from": origin(loaded),
        "companions": companions,
        "rooms": rooms,
        "models": models(loaded).collect::<BTreeMap<_, _>>(),
        "moderation": moderation(loaded),
        "turn_taking": loaded.settings.turn_taking,
        "closing": loaded.settings.closing,
        "repetition": loaded.settings.repetition,
        "discord": loaded.settings.discord.is_on(),
        "notes": loaded.notes,
    })
}

fn write_text(out: &mut String, loaded: &Loaded) -> fmt::Result {
    writeln!(out, "settings: {}", line(&loaded.sources.join(", ")))?;
    writeln!(out, "\ncompanions ({}):", line(&origin(loaded)))?;
    for companion in loaded.companions.values() {
        let aliases: String = companion.aliases.iter().map(|alias| format!(", {}", line(alias))).collect();
        let [soonest, latest] = [-MOST_JITTER, MOST_JITTER].map(|jitter| companion.policy().interval(0, jitter));
        writeln!(
            out,
            "  {:<12} {:<10} (after {soonest} to {latest} messages) lull after {} s, voice {} s; answers to {}{aliases}",
            line(companion.id.as_str()),
            companion.interjection,
            companion.text_lull_timeout,
            companion.voice_lull_timeout,
            line(&companion.name),
        )?;
        writeln!(out, "  {:<12} {}", "", line(&companion.chattiness))?;
        let limits = own_settings(companion);
        if !limits.is_empty() {
            writeln!(out, "  {:<12} {}", "", line(&limits.join("; ")))?;
        }
    }
    writeln!(out, "\nrooms:")?;
    for room in &loaded.settings.console.rooms {
        let members: Vec<_> = room.companions.iter().map(|id| line(id.as_str())).collect();
        let members = if members.is_empty() { "no companions".to_owned() } else { members.join(", ") };
        writeln!(out, "  {:<12} guild {}: {members}", line(&room.id), line(room.guild.as_str()))?;
    }
    writeln!(out, "\nconversations:")?;
    writeln!(out, "  {:<12} {}", "turn_taking", turn_taking(loaded))?;
    writeln!(out, "  {:<12} {}", "closing", closing(loaded))?;
    writeln!(out, "  {:<12} {}", "repetition", repetition(loaded))?;
    writeln!(out, "\nmodels:")?;
    for (name, model) in models(loaded) {
        writeln!(out, "  {:<12} {}", line(&name), line(&model))?;
    }
    writeln!(out, "  {:<12} {}", "prices", prices(loaded))?;
    let unexamined = || "not used: statements are not examined (models.moderation)".to_owned();
    writeln!(out, "  {:<12} {}", "moderation", line(&moderation(loaded).unwrap_or_else(unexamined)))?;
    writeln!(out, "\nspeech:")?;
    let speech = &loaded.settings.speech;
    let hears: Vec<_> = speech.recognition.iter().map(|name| service(loaded, name)).collect();
    writeln!(out, "  {:<12} {}", "hears", line(&hears.join(", then ")))?;
    writeln!(out, "  {:<12} {}", "speaks", line(&service(loaded, &speech.synthesis)))?;
    writeln!(out, "\nplatforms:")?;
    writeln!(out, "  {:<12} {}", "discord", discord(loaded))?;
    for note in &loaded.notes {
        writeln!(out, "\nnote: {}", line(note))?;
    }
    writeln!(out, "\nthe settings are good")
}

fn origin(loaded: &Loaded) -> String {
    match &loaded.companions_from {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Folder(folder) => folder.display().to_string(),
    }
}

/// The settings that differ for this companion.
fn own_settings(companion: &Companion) -> Vec<String> {
    let most = companion.max_turns.map(|most| format!("at most {most} statements of its own in a conversation"));
    let unjudged = (!companion.repetition).then(|| "not judged for repetition".to_owned());
    let models = [ModelRole::Main, ModelRole::Side].into_iter().filter_map(|role| {
        let name = companion.model.of(role);
        (*name != ModelName::from(role)).then(|| format!("{} model {name}", role.as_str()))
    });
    most.into_iter().chain(unjudged).chain(models).collect()
}

fn turn_taking(loaded: &Loaded) -> String {
    let rules = &loaded.settings.turn_taking;
    let total = rules.max_turns.map_or_else(|| "any number".to_owned(), |max| format!("at most {max}"));
    let votes = match rules.voting {
        Voting::Each => "votes",
        Voting::Together => "votes together",
    };
    format!(
        "{votes} within {} s, speaks after {} s; at most {} statements in a row, {total} in a conversation; an external companion \
         speaks within {} s",
        rules.state_timeout_secs, rules.turn_delay_secs, rules.max_companion_streak, rules.external_statement_timeout_secs,
    )
}

fn closing(loaded: &Loaded) -> String {
    let rules = &loaded.settings.closing;
    format!(
        "reopens after {} human messages; a new conversation after {} s of silence",
        rules.reopen_after, rules.episode_idle_secs
    )
}

fn repetition(loaded: &Loaded) -> &'static str {
    let rules = &loaded.settings.repetition;
    match rules.judge {
        _ if !rules.enabled => "not measured",
        Judge::Lexical => "measured by the similarity of the words (lexical)",
        Judge::Model => "judged by the side model after each statement from the third on (model)",
        Judge::Both => "suspected by the similarity of the words, confirmed by the side model (both)",
    }
}

/// All models, with their names in the settings.
fn models(loaded: &Loaded) -> impl Iterator<Item = (String, String)> {
    let models = &loaded.settings.models;
    let roles = [ModelRole::Side, ModelRole::Main].map(|role| (role, role.into()));
    let named = models.named.keys().map(|name| (ModelRole::Main, name.clone()));
    roles.into_iter().chain(named).map(|(role, name)| (name.to_string(), model(models, role, &name)))
}

/// The model for a role. If only one role has a model, it serves both; without any, `rehearsal` does (docs/design/models.md M-1).
fn model(models: &Models, role: ModelRole, name: &ModelName) -> String {
    let Served { table, endpoint, .. } = models.served(role, name);
    let Some((model, url)) = endpoint.and_then(|endpoint| endpoint.model.clone().zip(endpoint.base_url.clone())) else {
        return "rehearsal (built in; no model is configured)".to_owned();
    };
    let whose = if table == *name { String::new() } else { format!(" (the model of {table})") };
    format!("{model} at {}{whose}", without_credentials(&url))
}

/// The addresses of all models.
pub(super) fn model_urls(models: &Models) -> impl Iterator<Item = String> {
    let roles = [ModelRole::Side, ModelRole::Main].map(|role| (role, role.into()));
    let named = models.named.keys().map(|name| (ModelRole::Main, name.clone()));
    roles.into_iter().chain(named).filter_map(|(role, name)| models.served(role, &name).endpoint?.base_url.clone())
}

fn prices(loaded: &Loaded) -> String {
    let models = &loaded.settings.models;
    let price = |role: ModelRole, name: &ModelName| {
        let Some(endpoint) = models.served(role, name).endpoint else { return format!("{name} free") };
        match endpoint.input_price.zip(endpoint.output_price) {
            Some((input, output)) => {
                let cached = endpoint.cache_read_price.map(|cached| format!(", cached {cached}")).unwrap_or_default();
                format!("{name} {input} and {output}{cached}")
            }
            None => format!("{name} not set"),
        }
    };
    let roles = [ModelRole::Side, ModelRole::Main].map(|role| price(role, &role.into()));
    let named = models.named.keys().map(|name| price(ModelRole::Main, name));
    let prices: Vec<_> = roles.into_iter().chain(named).collect();
    format!("{} ({} for a million input and output tokens)", prices.join(", "), models.currency)
}

/// The moderation service, if one is configured. `tertulia models check` checks whether it works.
fn moderation(loaded: &Loaded) -> Option<String> {
    let Settings { models, safety, .. } = &loaded.settings;
    let service = models.moderation.as_ref()?;
    let model = service.model.as_deref().unwrap_or("the usual model");
    let (url, meanwhile) = (without_credentials(&service.base_url), safety.moderation_fails.meanwhile());
    Some(format!("{model} at {url} (`tertulia models check` tries it); when it does not answer, {meanwhile}"))
}

/// A speech service.
fn service(loaded: &Loaded, name: &str) -> String {
    let Some(table) = loaded.settings.speech.services.get(name) else { return format!("{name} (built in)") };
    let resolved = table.resolved(name).map(|Resolved { api, base_url, model }| {
        format!("{name} ({api}, {model} at {})", without_credentials(base_url.as_str()))
    });
    resolved.unwrap_or_else(|_| name.to_owned())
}

/// Whether Discord is configured. `tertulia discord check` checks whether it works.
fn discord(loaded: &Loaded) -> &'static str {
    if loaded.settings.discord.is_on() {
        "a token is set; `tertulia discord check` checks whether it works"
    } else {
        "not used: no token is set (discord.token)"
    }
}

/// Scheme, host and path of a URL. The user info before an `@` and the query after a `?` may be secret.
pub(super) fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

/// Prints to standard output. A closed pipe is not a failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_credentials() {
        let shown = without_credentials("https://me:secret@models.example/v1?key=hidden");

        assert_eq!(shown, "https://models.example/v1");
    }

    #[test]
    fn the_text_names_rooms_interjection_levels_and_models() {
        let loaded = built_in();

        let text = as_text(&loaded);

        assert!(text.contains("lobby        guild home: aria, bruno, cleo"), "{text}");
        assert!(text.contains("cleo         very_eager (after 3 to 5 messages)"), "{text}");
        assert!(text.contains("aria         average    (after 7 to 11 messages)"), "{text}");
        assert!(text.contains("rehearsal"), "{text}");
        assert!(text.contains("hears        rehearsal (built in)"), "{text}");
        assert!(text.contains("discord      not used: no token is set"), "{text}");
        assert!(text.contains("prices       side free, main free (USD for a million input and output tokens)"), "{text}");
        let turns =
            "turn_taking  votes within 20 s, speaks after 2 s; at most 4 statements in a row, any number in a conversation";
        assert!(text.contains(turns), "{text}");
        assert!(text.contains("closing      reopens after"), "{text}");
        assert!(text.contains("repetition   measured by the similarity of the words"), "{text}");
    }

    #[test]
    fn the_moderation_service_is_shown_with_what_happens_when_it_fails() {
        let mut loaded = built_in();
        assert!(as_text(&loaded).contains("moderation   not used: statements are not examined"), "{}", as_text(&loaded));
        let service = json!({ "base_url": "https://mod.example/v1", "model": "omni" });
        let overlay = json!({ "models": { "moderation": service }, "safety": { "moderation_fails": "closed" } });
        loaded.settings = Settings::overlay(overlay).unwrap();

        let (text, object) = (as_text(&loaded), as_json(&loaded));

        let shown = "omni at https://mod.example/v1 (`tertulia models check` tries it); when it does not answer, no statements are posted";
        assert!(text.contains(&format!("moderation   {shown}")), "{text}");
        assert!(object["moderation"].as_str().unwrap().starts_with(shown), "{object}");
    }

    #[test]
    fn a_model_that_was_connected_on_the_page_is_shown() {
        let (mut loaded, data) = (built_in(), tempfile::tempdir().unwrap());
        loaded.settings.storage.path = data.path().to_owned();
        let connection = r#"{"base_url":"https://models.example/v1","api_key":"secret","main":{"model":"large"}}"#;
        std::fs::write(data.path().join("connection.json"), connection).unwrap();

        use_connection(&mut loaded).unwrap();

        let text = as_text(&loaded);
        assert!(
            text.contains("large at https://models.example/v1") && text.contains("note: the models were connected on the page"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        let slow = r#"{"base_url":"https://models.example/v1","main":{"model":"large"},"timeout_secs":60}"#;
        std::fs::write(data.path().join("connection.json"), slow).unwrap();
        use_connection(&mut loaded).unwrap();
        let text = as_text(&loaded);
        assert!(text.contains("votes within 65 s") && text.contains("a time limit of 60 s for decisions"), "{text}");
        loaded.settings = Settings::overlay(json!({})).unwrap();
        loaded.settings.storage.path = data.path().to_owned();
        loaded.settings.set = vec![("models.side.timeout_secs", "config/default.toml:7".to_owned())];
        use_connection(&mut loaded).unwrap();
        let text = as_text(&loaded);
        assert!(text.contains("votes within 20 s"), "{text}");
        assert!(text.contains("not used, because the settings set models.side.timeout_secs (config/default.toml:7)"), "{text}");
        std::fs::write(data.path().join("connection.json"), "{").unwrap();
        assert!(use_connection(&mut loaded).unwrap_err().to_string().contains("delete it"));
    }

    #[test]
    fn the_json_has_the_same_settings() {
        let loaded = built_in();

        let object = as_json(&loaded);

        assert_eq!(object["ok"], true);
        assert_eq!(object["companions"][0]["interjection"], "average");
        assert_eq!(object["turn_taking"]["max_companion_streak"], 4);
        assert_eq!(object["repetition"]["judge"], "lexical");
        assert_eq!(object["discord"], false);
        assert_eq!(object["rooms"][0]["companions"], json!(["aria", "bruno", "cleo"]));
    }

    fn built_in() -> Loaded {
        let nowhere = tempfile::tempdir().expect("a folder");
        let sources =
            Sources { folder: nowhere.path().join("none"), folder_was_named: false, profile: None, environment: Vec::new() };
        with_kept(&sources).expect("the built-in settings are good")
    }
}
