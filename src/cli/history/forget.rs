//! `tertulia history forget`: deletes a person's messages.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use reqwest::Method;
use serde_json::{Value, json};

use super::{check_id, still_readable};
use crate::cli::access::{self, Access};
use crate::cli::client::block_on;
use crate::cli::command_io::report;
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::ports::backend::Backend;
use crate::ports::backend::keeping::Forget;
use crate::server::offline;
use crate::settings::Loaded;

/// Asks for confirmation, and deletes.
pub(super) fn run(loaded: Loaded, server: Option<&str>, forget: &Forget, yes: bool, json: bool) -> Result<(), Failure> {
    let Forget { guild, person, answers } = forget;
    let guild = guild.as_str();
    check_id("--guild", guild)?;
    check_id("--person", person)?;
    let storage = loaded.settings.storage.clone();
    let access = access::find(&loaded, server)?;
    let counted = match &access {
        Access::Server(client) if !yes => {
            let answers = answers.to_string();
            let query = [("guild", guild), ("person", &**person), ("answers", &*answers)];
            Some(block_on(client.object(client.request(Method::GET, "/api/forget", &query)))?)
        }
        _ => None,
    };
    if !yes && !confirmed(&question(forget, counted.as_ref()))? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    let forgotten = match access {
        Access::Server(client) => {
            let request = client
                .request(Method::POST, "/api/forget", &[])
                .json(&json!({ "guild": guild, "person": person, "answers": answers }));
            block_on(client.object(request))?
        }
        Access::Store => {
            access::require_store(&loaded.settings.storage)?;
            json!(offline::ask_to_write(loaded, async |backend: &Backend| backend.maintenance.forget(forget.clone()).await)??)
        }
    };
    let sentence = format!(
        "deleted: {}; {}{}",
        amounts(&forgotten),
        still_readable(&storage, forgotten["in_file_until"].as_str()),
        if *answers {
            ""
        } else {
            "; the companions' answers stay, and this command cannot find them any more: those that still name the person can be deleted one by one"
        }
    );
    report(json, &forgotten, &sentence)
}

/// The number of items of each kind.
fn amounts(forgotten: &Value) -> String {
    let counted = |what: &str, one: &str, many: &str| match forgotten[what].as_u64() {
        Some(1) => format!("1 {one}"),
        _ => format!("{} {many}", forgotten[what]),
    };
    [("messages", "message"), ("decisions", "decision"), ("summaries", "summary")]
        .map(|(many, one)| counted(many, one, many))
        .join(", ")
}

/// The confirmation question: what is deleted and, without `--answers`, that the answers cannot be found later.
fn question(forget: &Forget, counted: Option<&Value>) -> String {
    let Forget { guild, person, answers } = forget;
    let (guild, person) = (visible::line(guild.as_str()), visible::line(person));
    let counted = counted.map(|counted| format!(": {}", amounts(counted))).unwrap_or_default();
    if *answers {
        return format!("Everything that {person} said in {guild}, and what companions answered, will be deleted{counted}.");
    }
    format!(
        "Everything that {person} said in {guild} will be deleted{counted}. What companions answered stays, and cannot be found any more \
         afterwards: delete it now, with --answers, or not at all."
    )
}

/// Asks for confirmation of an action that cannot be undone.
pub(super) fn confirmed(what: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "this cannot be undone, and standard input is not a terminal to confirm it on: add --yes to go on".into(),
        ));
    }
    eprint!("{} This cannot be undone. Continue? [y/N] ", visible::line(what));
    let mut answer = String::new();
    let read = io::stderr().flush().and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.map_err(|error| Failure::Failed(format!("standard input: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_warns_that_answers_cannot_be_found_afterwards() {
        let counted = json!({ "messages": 1, "decisions": 2, "summaries": 0 });
        let question = |answers| question(&Forget { guild: "home".into(), person: "Ana".into(), answers }, Some(&counted));

        assert!(question(false).contains("will be deleted: 1 message, 2 decisions, 0 summaries. What companions answered stays"));
        assert!(question(false).contains("--answers, or not at all"));
        assert!(!question(true).contains("--answers"));
    }
}
