//! `tertulia history forget`: takes out what a person said.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use reqwest::Method;
use serde_json::json;

use super::{check_id, in_file_until};
use crate::cli::asking::report;
use crate::cli::client::block_on;
use crate::cli::failure::Failure;
use crate::cli::visible;
use crate::cli::whom::{self, Whom};
use crate::ports::backend::Backend;
use crate::ports::backend::keeping::Forget;
use crate::server::offline;
use crate::settings::Loaded;

/// Asks whether to go on, and forgets.
pub(super) fn run(loaded: Loaded, server: Option<&str>, whom: &Forget, yes: bool, json: bool) -> Result<(), Failure> {
    let Forget { guild, person, answers } = whom;
    let guild = guild.as_str();
    check_id("--guild", guild)?;
    check_id("--person", person)?;
    let asked = whom::find(&loaded, server)?;
    if !yes && !confirmed(&question(whom))? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    let forgotten = match asked {
        Whom::Server(client) => {
            let request = client
                .request(Method::POST, "/api/forget", &[])
                .json(&json!({ "guild": guild, "person": person, "answers": answers }));
            block_on(client.object(request))?
        }
        Whom::Store => {
            whom::there_is_one(&loaded.settings.storage.path)?;
            json!(offline::ask(loaded, async |backend: &dyn Backend| backend.forget(whom.clone()).await)??)
        }
    };
    let counted = |what: &str, one: &str, many: &str| match forgotten[what].as_u64() {
        Some(1) => format!("1 {one}"),
        _ => format!("{} {many}", forgotten[what]),
    };
    let sentence = format!(
        "forgotten: {}, {}, {}; backups made before still hold them, and the file on disk until {}{}",
        counted("messages", "message", "messages"),
        counted("decisions", "decision", "decisions"),
        counted("summaries", "summary", "summaries"),
        in_file_until(forgotten["in_file_until"].as_str()),
        if *answers {
            ""
        } else {
            "; what companions answered stays, and is not to be found by this command any more: what still names them can be taken back one by one"
        }
    );
    report(json, &forgotten, &sentence)
}

/// Tells what is done, and what cannot be done any more afterwards.
fn question(whom: &Forget) -> String {
    let Forget { guild, person, answers } = whom;
    let (guild, person) = (visible::line(guild.as_str()), visible::line(person));
    if *answers {
        return format!("Everything that {person} said in {guild}, and what companions answered, is taken out of the record.");
    }
    format!(
        "Everything that {person} said in {guild} is taken out of the record. What companions answered stays, and cannot be found any more \
         once this is done: it goes together with what was said, by --answers, or not at all."
    )
}

/// Asks whether to do what cannot be undone.
pub(super) fn confirmed(what: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage("this cannot be undone, and nobody can be asked here: say --yes to go on".into()));
    }
    eprint!("{} This cannot be undone. Go on? [y/N] ", visible::line(what));
    let mut answer = String::new();
    let heard = io::stderr().flush().and_then(|()| io::stdin().lock().read_line(&mut answer));
    heard.map_err(|error| Failure::Failed(format!("standard input: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_leaves_the_answers_is_told_before_that_they_cannot_be_found_afterwards() {
        let asked = |answers| question(&Forget { guild: "home".into(), person: "Ana".into(), answers });

        assert!(asked(false).contains("--answers, or not at all"));
        assert!(!asked(true).contains("--answers"));
    }
}
