//! `tertulia discord check --answers`: what Discord asks when it reviews a bot, answered from the settings in force.
//!
//! The questions are those of its forms for privileged intents ("Getting Started with Privileged Intent Review") and for the verification of a bot.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::check::{model_urls, without_credentials};
use crate::settings::discord::MessageContent;
use crate::settings::models::Vision;
use crate::settings::storage::Engine;
use crate::settings::{Loaded, Settings};

/// Discord recommends to delete data of people within this time ("Privileged Intents Best Practices").
const RECOMMENDED_DAYS: u32 = 30;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Answer {
    pub(super) question: &'static str,
    pub(super) answer: String,
}

/// The questions, each with an answer that the operator checks and completes.
pub(super) fn answers(loaded: &Loaded) -> Vec<Answer> {
    let settings = &loaded.settings;
    let asked: [(&'static str, String); 13] = [
        ("What does your application do?", application(loaded)),
        ("Which privileged intents does it use?", intents(settings).to_owned()),
        ("Why does it need the Message Content intent?", why_content(settings).to_owned()),
        ("Which data does it use, and which does it store outside of Discord?", data(settings)),
        ("How long is it stored? Is it 30 days or less?", how_long(settings)),
        ("Where is it stored, and is it encrypted at rest?", place(settings)),
        ("Who can see it?", viewers(settings)),
        ("To whom is it passed on?", recipients(loaded)),
        ("Is it used to train machine learning or AI models?", training(loaded)),
        ("Can users opt out?", opt_out(settings)),
        ("How do users request deletion of their data?", deletion(settings)),
        ("Do you have a public privacy policy?", privacy(settings)),
        ("How many shards does it use, and how does it start them?", shards(settings)),
    ];
    asked.into_iter().map(|(question, answer)| Answer { question, answer }).collect()
}

fn application(loaded: &Loaded) -> String {
    let names: Vec<_> = loaded.companions.values().take(5).map(|companion| &*companion.name).collect();
    format!(
        "It hosts AI companions ({}) in channels that the managers of a server choose. They read along in these channels, and decide when to answer \
         and when to stay silent. A companion writes under its own name through a webhook, with the tag APP. People are told that companions are AI. \
         Add: your audience, and screenshots or a video of a conversation, of /tertulia status and of /tertulia about.",
        names.join(", ")
    )
}

const fn intents(settings: &Settings) -> &'static str {
    match settings.discord.message_content {
        MessageContent::Off => "None (discord.message_content = \"off\"). Then there is nothing to apply for.",
        MessageContent::Auto => {
            "Message Content, if it is enabled (discord.message_content = \"auto\"). Server Members and Presence are never requested."
        }
        MessageContent::On => {
            "Message Content (discord.message_content = \"on\"). Server Members and Presence are never requested."
        }
    }
}

const fn why_content(settings: &Settings) -> &'static str {
    match settings.discord.message_content {
        MessageContent::Off => "It does not. Companions read messages that mention the bot, direct messages and commands.",
        MessageContent::Auto | MessageContent::On => {
            "Companions take part in a group's conversation. For this they need the messages before one that addresses them, their name without a \
             mention, and replies to their own messages, which a webhook posts and which therefore do not mention the bot. Whether to speak is decided \
             from what was said. Commands, mentions and the message menu work as well (/tertulia say, Ask a companion about this), and remain without the \
             intent; but then nobody can talk with a companion as with a member, and it never knows what a question is about."
        }
    }
}

fn data(settings: &Settings) -> String {
    let mut stored = vec![
        "In channels to which a manager has added a companion: the text of messages, the author's id and shown name, the time, and the companions' answers and \
         decisions. Nothing of other channels",
    ];
    if settings.memory.notes {
        stored.push("short notes about what people said, where a server or person has not turned them off");
    }
    if settings.discord.reactions {
        stored.push("who reacts to companions' messages with which emoji");
    }
    stored.push("in calls that companions join: the recognised words; audio is not stored");
    stored.push("names, sizes and descriptions of files that are posted there; the files themselves are not stored");
    let models = &settings.models;
    if [models.main.vision, models.side.vision]
        .into_iter()
        .chain(models.named.values().map(|model| model.vision))
        .any(|vision| vision != Vision::Off)
    {
        stored.push(
            "pictures and text files of messages to a companion are read for its answer and passed to its model, and not stored",
        );
    }
    if settings.speech.voice_notes {
        stored.push("the words of voice notes to a companion; the recording is read, passed to the recogniser, and not stored");
    }
    if !settings.discord.bridges.is_empty() {
        stored.push("what listed bridges relay, with the names that they show");
    }
    stored.push("who opted out, and when a person was told that companions are AI");
    format!("{}. Member lists and presences are not stored.", stored.join("; "))
}

fn how_long(settings: &Settings) -> String {
    let storage = &settings.storage;
    let days = storage.retention_days.filter(|days| *days > 0);
    let kept = match days {
        Some(days) if days <= RECOMMENDED_DAYS => format!("Yes: {days} days (storage.retention_days)."),
        Some(days) => format!("No: {days} days (storage.retention_days). Discord recommends {RECOMMENDED_DAYS} at most."),
        None => format!(
            "No: until somebody deletes it. Discord recommends {RECOMMENDED_DAYS} days at most: storage.retention_days = {RECOMMENDED_DAYS}."
        ),
    };
    let exceptions: Vec<_> = storage
        .guild_retention_days
        .iter()
        .map(|(guild, days)| if *days == 0 { format!("{guild} without an end") } else { format!("{guild} {days} days") })
        .collect();
    let exceptions = if exceptions.is_empty() { String::new() } else { format!(" Other servers: {}.", exceptions.join(", ")) };
    let file = match storage.compacts() {
        true => format!("{} days later at the latest", storage.compact_after_days),
        false => "when you compact the database".to_owned(),
    };
    format!(
        "{kept}{exceptions} What is deleted is gone from answers, pages and exports at once, and from the database file {file}. \
         Backups of the server hold it for up to a day longer; yours for as long as you keep them."
    )
}

fn place(settings: &Settings) -> String {
    let place = match settings.storage.engine {
        Engine::Postgres => "In a PostgreSQL database (storage.url)".to_owned(),
        _ => format!("On the disk of the server's machine, in {}", settings.storage.path.display()),
    };
    format!(
        "{place}. The server does not encrypt it: Discord's developer policy requires encryption at rest, so answer yes only if that disk or database is \
         encrypted, with its backups. Connections to Discord and to services elsewhere use TLS."
    )
}

fn viewers(settings: &Settings) -> String {
    let spans = match (&settings.telemetry.otlp_endpoint, settings.telemetry.capture_content) {
        (Some(endpoint), true) => {
            format!("; who reads the traces at {} (telemetry.capture_content is on)", without_credentials(endpoint))
        }
        _ => String::new(),
    };
    format!(
        "The operator of the server, on its page and in its database, and whom the operator gives the admin token{spans}. The log and the metrics have \
         no texts and no authors. Members see what was said in the channels that they can read on Discord; each person can export the own data."
    )
}

fn recipients(loaded: &Loaded) -> String {
    let urls: BTreeSet<String> = service_urls(loaded);
    if urls.is_empty() {
        return "To nobody: models and voices are built in (rehearsal).".to_owned();
    }
    let urls: Vec<_> = urls.into_iter().collect();
    format!("To the services that write and check the answers, and only what one needs: {}. It is not sold.", urls.join(", "))
}

fn training(loaded: &Loaded) -> String {
    let providers = if service_urls(loaded).is_empty() {
        ""
    } else {
        " Check that the services above do not train on it either, in their terms or your contract with them."
    };
    format!("The server trains nothing.{providers}")
}

fn opt_out(settings: &Settings) -> String {
    let notes = if settings.memory.notes { " /tertulia memory me:off ends notes alone." } else { "" };
    format!(
        "Yes, each person at any time: /tertulia ignore me, or Apps > Pause for me in the menu of the own name. Companions of that server then do not \
         read, store, count or answer what this person says.{notes} Managers remove companions from a channel with /tertulia leave."
    )
}

fn deletion(settings: &Settings) -> String {
    let operator = settings.safety.operator.as_deref().unwrap_or("NAME AND ADDRESS (set safety.operator)");
    format!(
        "By themselves, at once: /tertulia forget me removes everything that a person said in a server, Apps > Forget this one message, and deleting a message on \
         Discord removes it, too. /tertulia export-me shows what is stored. Otherwise they ask {operator}."
    )
}

fn privacy(settings: &Settings) -> String {
    match &settings.safety.privacy {
        Some(address) => format!("Yes: {address}. /tertulia about and the disclosure below a person's first answer link to it."),
        None => "Not yet. Publish one with the answers above, and set safety.privacy to its address; then /tertulia about links to it.".to_owned(),
    }
}

fn shards(settings: &Settings) -> String {
    let shards = match settings.discord.shards {
        Some(shards) => format!("{shards} (discord.shards)"),
        None => "As many as Discord recommends, one for about 1,000 servers".to_owned(),
    };
    format!(
        "{shards}, all in one process. They start one after the other, within max_concurrency and the limit of identifies a day, and resume after a restart."
    )
}

/// The addresses of all services that may get texts or audio.
fn service_urls(loaded: &Loaded) -> BTreeSet<String> {
    let Settings { models, speech, .. } = &loaded.settings;
    let moderation = models.moderation.as_ref().map(|service| service.base_url.to_string());
    // A companion's file can name any of the speech services.
    let resolved = speech.services.iter().filter_map(|(name, service)| service.resolved(name).ok());
    let speech_urls = resolved.map(|resolved| resolved.base_url.to_string());
    model_urls(models).chain(moderation).chain(speech_urls).map(|url| without_credentials(&url)).collect()
}
