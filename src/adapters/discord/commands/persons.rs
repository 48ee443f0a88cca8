//! The commands by which users control their own data: `forget me`, `ignore me`, `export-me`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures_util::StreamExt as _;
use serde::Deserialize;

use super::interaction::ChannelContext;
use super::registered::SURE_FORGET;
use super::{Answer, CommandHandler, words};
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{Forget, Forgotten, Person};
use crate::ports::backend::stamp::Stamp;
use crate::rest::File;
use crate::snowflake::Snowflake;

/// The size limit of a file, in bytes. Discord's default limit was 10 MiB and is now 20 MiB (Discord's documentation, "API Reference", "Uploading
/// Files").
const LARGEST_FILE: usize = 8_000_000;
/// The separator between the entries of a file.
const SEPARATOR: &str = ",\n";

/// The time of an exported line, in a format that sorts by time.
#[derive(Deserialize)]
struct At {
    #[serde(default)]
    at: String,
}

impl CommandHandler {
    pub(super) async fn forget(&self, sure: bool, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        let scope = scope(here);
        if !sure {
            let text = format!(
                "This removes everything that you said {scope} from the companions' memory, with everything derived from it. Your messages on Discord stay, and \
                 the companions' answers.\n\
                 **This cannot be undone.**"
            );
            return Ok(Answer::Question { text, button: "Forget what I said", id: SURE_FORGET });
        }
        let forget = Forget { guild: here.guild_id(), person: person.person().as_str().into(), answers: false };
        let forgotten = match self.backend.maintenance.forget(forget).await {
            // The user has no messages here, or was forgotten before.
            Err(Refused::NotFound(_)) => Forgotten::default(),
            outcome => outcome?,
        };
        tracing::info!(guild = %here.guild_id(), messages = forgotten.messages, "a person was forgotten on request");
        Ok(Answer::Done(format!(
            "{}\nBackups that were made before may still contain it: those of the server for up to a day, others until the operators of this bot delete them.\n\
             Companions read what you say from now on. `/tertulia ignore me` keeps companions from listening to you.",
            describe(&forgotten, scope)
        )))
    }

    /// Exports the user's data as a file.
    pub(super) async fn export(&self, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        let scope = scope(here);
        let slot = self.files.acquire(here.guild_id()).map_err(|_| Answer::Refused(words::BUSY.to_owned()))?;
        let person = Person { guild: here.guild_id(), id: person.person().as_str().into() };
        let mut exported = match self.backend.records.export_person(person).await {
            Err(Refused::NotFound(_)) => {
                return Ok(Answer::Done(format!("Nothing that you said {scope} is kept, and nothing else about you.")));
            }
            lines => lines?,
        };
        let (mut lines, mut bytes, mut left_out, mut is_damaged) = (BTreeMap::new(), 0, 0, false);
        while let Some(line) = exported.next().await {
            let line = match line {
                Ok(line) => line,
                // The error is the last item of the stream.
                Err(Refused::Damaged(_)) => {
                    is_damaged = true;
                    break;
                }
                Err(refused) => return Err(refused.into()),
            };
            bytes += line.len() + SEPARATOR.len();
            let at = serde_json::from_str(&line).map(|At { at }| at).unwrap_or_default();
            lines.insert((at, lines.len() + left_out), line);
            while bytes > LARGEST_FILE
                && let Some((_, oldest)) = lines.pop_first()
            {
                bytes -= oldest.len() + SEPARATOR.len();
                left_out += 1;
            }
        }
        tracing::info!(guild = %here.guild_id(), left_out, "a person's own data was handed out on request");
        let mut text = format!(
            "This is what is kept of what you said {scope}, the newest first. Only you see it: save the file, because this answer does not stay. What others said is not in it, \
             and what was derived from your messages is not either; `/tertulia forget me` removes that, too."
        );
        if left_out > 0 {
            let messages = if left_out == 1 { "message does" } else { "messages do" };
            write!(
                text,
                "\n**{left_out} older {messages} not fit into the file.** The operators of this bot can give you all of them."
            )
            .expect("writing to a String does not fail");
        }
        if is_damaged {
            text.push_str("\n**Something cannot be read, and is missing.** Please tell the operators of this bot.");
        }
        let newest_first: Vec<String> = lines.into_values().rev().collect();
        let file = File { name: "my-data.json", text: format!("[\n{}\n]\n", newest_first.join(SEPARATOR)).into() };
        Ok(Answer::File { text, file, _slot: slot })
    }

    pub(super) async fn ignore(&self, on: bool, here: &ChannelContext, person: Snowflake) -> Result<String, Answer> {
        let changed = self.opt_outs.ignore(&here.guild_id(), &person.person(), on).await?;
        if changed {
            tracing::info!(guild = %here.guild_id(), ignored = on, "a person changed whether companions listen to them");
        }
        let scope = scope(here);
        Ok(match (on, changed) {
            (true, true) => format!(
                "No companion {scope} reads, counts or answers what you say from now on, until you use `/tertulia ignore me switch:off`.\n\
                 What you said before is still remembered; `/tertulia forget me` removes it."
            ),
            (true, false) => {
                format!("No companion {scope} listens to you, as you wanted. To change that: `/tertulia ignore me switch:off`")
            }
            (false, true) => format!("Companions {scope} listen to you again. They do not learn what you said meanwhile."),
            (false, false) => format!("Companions {scope} listen to you. To be left alone: `/tertulia ignore me`"),
        })
    }
}

fn scope(here: &ChannelContext) -> &'static str {
    if here.is_direct() { "in this conversation" } else { "on this server" }
}

fn describe(forgotten: &Forgotten, scope: &str) -> String {
    let count = |count: u64, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    match forgotten.messages {
        0 => format!("Nothing that you said {scope} is remembered."),
        messages => format!(
            "Forgotten: {} of yours, with {} and {} derived from them.\n{}",
            count(messages, "message", "messages"),
            count(forgotten.decisions, "decision", "decisions"),
            count(forgotten.summaries, "summary", "summaries"),
            file_notice(forgotten.in_file_until)
        ),
    }
}

/// How long the words remain in the database and in backups.
fn file_notice(until: Option<Stamp>) -> String {
    let until = match until {
        Some(Stamp(until)) => format!("until <t:{}:D> at the latest", until.as_micros() / 1_000_000),
        None => "until they have cleaned it up".to_owned(),
    };
    format!(
        "No companion and no page shows them any more. The operators of this bot could still find the words in its database, {until}; in the backups \
         that are made of it; and in older backups that they made."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn the_answer_says_how_long_forgotten_words_stay_in_the_database() {
        let forgotten = |until: Option<u64>| {
            let in_file_until = until.map(|secs| Stamp(Moment::from_micros(secs * 1_000_000)));
            describe(&Forgotten { messages: 2, in_file_until, ..Forgotten::default() }, "on this server")
        };

        assert!(forgotten(Some(1_777_636_800)).contains("in its database, until <t:1777636800:D> at the latest"));
        assert!(forgotten(None).contains("in its database, until they have cleaned it up"));
        assert!(!describe(&Forgotten::default(), "on this server").contains("database"));
    }
}
