//! Posts notices in the text chat of a voice channel: that companions listen and how to opt out, and which speech service fails. Each is posted
//! once per call.

use std::sync::Arc;

use futures_util::FutureExt as _;

use super::super::commands::words::listed;
use super::super::snowflake::Snowflake;
use super::Shared;
use super::kept::ToldPeople;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::call_room::{Description, Trouble};
use crate::ports::chat_platform::{NotSent, insist};
use crate::texts::Language;

/// The notice is not repeated in a channel within this time, even after a restart, unless the bot has left the call since.
const HOLDS_SECS: u64 = 6 * 3_600;

impl Shared {
    /// Posts the notice that companions listen, unless it was posted recently.
    pub(super) fn tell_people(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) {
        if !self.parts.tells_people {
            return;
        }
        let at = self.parts.discord.now().as_micros() / 1_000_000;
        {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return };
            if entry.told.is_some_and(|told| told.channel == channel && at.saturating_sub(told.at) < HOLDS_SECS) {
                return;
            }
            (entry.told, entry.is_telling) = (Some(ToldPeople { channel, at }), true);
        }
        let shared = self.clone();
        tokio::spawn(async move {
            shared.post_notice(guild, channel, at).await;
            shared.guilds.lock().entry(guild).and_modify(|entry| entry.is_telling = false);
            shared.keep(guild).await;
        });
    }

    async fn post_notice(&self, guild: Snowflake, channel: Snowflake, at: u64) {
        let text = match self.notice(channel).await {
            Ok(text) => text,
            Err(error) => return tracing::warn!(%guild, %channel, %error, "people in a call are not told that companions listen"),
        };
        if let Err(error) = self.post_in_text(channel, &text, &format!("{channel}/voice/{at}")).await {
            tracing::warn!(
                %guild, %channel, ?error,
                "people in a call are not told that companions listen: allow the bot to send messages in the text of the voice channel, \
                 or set discord.voice_notice = false and tell them yourself"
            );
        }
    }

    async fn post_in_text(&self, channel: Snowflake, text: &str, nonce: &str) -> Result<(), NotSent> {
        // Discord accepts only one message with the same nonce.
        insist(|| self.parts.discord.post_as_bot(channel, text, nonce).boxed()).await
    }

    /// Posts once per call that a speech service fails, unless another service has taken over.
    pub(super) fn tell_trouble(self: &Arc<Self>, guild: Snowflake, channel: Snowflake, trouble: Trouble) {
        let Some(text) =
            trouble_text(trouble).filter(|_| self.parts.calls.describe(&channel.channel()).troubles.contains(&trouble))
        else {
            return;
        };
        {
            let mut guilds = self.guilds.lock();
            let begun = guilds.get_mut(&guild).and_then(|entry| entry.call_in(channel));
            if !begun.is_some_and(|begun| begun.told.insert(trouble)) {
                return;
            }
        }
        let (shared, at) = (self.clone(), self.parts.discord.now().as_micros());
        tokio::spawn(async move {
            let nonce = format!("{channel}/{}/{at}", trouble.as_str());
            if let Err(error) = shared.post_in_text(channel, text, &nonce).await {
                tracing::warn!(%guild, %channel, ?error, trouble = trouble.as_str(), "people in a call are not told what does not work");
            }
        });
    }

    async fn notice(&self, channel: Snowflake) -> Result<String, Refused> {
        let id = RoomId::of(&channel.channel()).ok_or_else(|| Refused::not_found("no room".to_owned()))?;
        let room = self.parts.backend.rooms.get(&id).await?;
        let names: Vec<_> = room.companions.iter().map(|companion| companion.name.clone()).collect();
        Ok(text(&names, &self.parts.calls.describe(&channel.channel()), self.parts.discord.about()))
    }
}

/// The notice for a failed service. `None`: the trouble concerns only one person, or is reported elsewhere.
const fn trouble_text(trouble: Trouble) -> Option<&'static str> {
    Some(match trouble {
        Trouble::RecognitionFailed => {
            "Speech recognition is failing: companions notice that somebody speaks, but get no words. The bot keeps trying. What you type is answered."
        }
        Trouble::RecognitionUsedUp => {
            "This server has used up its speech recognition for today: companions hear no words. What you type is answered."
        }
        Trouble::SynthesisFailed => {
            "The companions\u{2019} voices are failing. What cannot be spoken is posted here as text. The bot keeps trying."
        }
        Trouble::SynthesisUsedUp => "This server has used up its voices for today: companions answer in writing.",
        Trouble::RecognitionFull | Trouble::NotHeard | Trouble::SaysAlready | Trouble::SaysTooMuch | Trouble::CallTooLong => {
            return None;
        }
    })
}

fn text(companions: &[Arc<str>], description: &Description, about: &str) -> String {
    let Description { recognition, recognises_words, .. } = description;
    let names = |names: &[Arc<str>]| listed(names).in_language(Language::English.code());
    let who = match companions {
        [] => "AI companions are".to_owned(),
        [_] => format!("The AI companion **{}** is", names(companions)),
        _ => format!("The AI companions **{}** are", names(companions)),
    };
    let hosts: Vec<_> = recognition.iter().filter_map(|service| service.host.clone()).collect();
    let kept = match (recognises_words, hosts.as_slice()) {
        (true, [_, ..]) => format!(
            "Audio is not recorded. It is sent to {} to recognise words; the words are kept like messages.",
            names(&hosts)
        ),
        (true, []) => {
            "Audio is not recorded, and stays on the machine of the bot. The words in it are kept like messages.".to_owned()
        }
        (false, [_, ..]) => format!("Audio is not recorded. It is sent to {}; no words are recognised.", names(&hosts)),
        (false, []) => {
            "Audio is not recorded, and stays on the machine of the bot. Companions notice that somebody speaks, but not what is said."
                .to_owned()
        }
    };
    format!(
        "{who} in this call now: what you say is heard, and may be answered aloud. {kept}\n\
         {about}\n\
         To opt out: `/tertulia ignore me`. To make them leave: `/tertulia voice leave`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::call_room::SpeechService;

    fn description(host: Option<&str>, recognises_words: bool) -> Description {
        let recognition = vec![SpeechService { provider: "ears", host: host.map(Arc::from) }];
        let synthesis = vec![SpeechService { provider: "voice", host: None }];
        Description { recognition, recognises_words, synthesis, people: Vec::new(), troubles: Vec::new() }
    }

    #[test]
    fn the_notice_says_who_listens_what_leaves_the_machine_and_how_to_opt_out() {
        let notice = |companions: &[&str], host, words| {
            let companions: Vec<Arc<str>> = companions.iter().map(|name| Arc::from(*name)).collect();
            text(&companions, &description(host, words), "It is run by Us.")
        };

        let aria = notice(&["Aria"], None, false);
        assert!(aria.starts_with("The AI companion **Aria** is in this call now"), "{aria}");
        assert!(aria.contains("stays on the machine of the bot") && aria.contains("not what is said"), "{aria}");
        assert!(aria.contains("\nIt is run by Us.\n"), "{aria}");
        assert!(aria.contains("`/tertulia ignore me`") && aria.contains("`/tertulia voice leave`"), "{aria}");
        let external = notice(&["Aria", "Ben", "Cy"], Some("speech.example"), true);
        assert!(external.starts_with("The AI companions **Aria, Ben and Cy** are"), "{external}");
        assert!(external.contains("not recorded. It is sent to speech.example to recognise words"), "{external}");
        let own = notice(&[], None, true);
        assert!(own.starts_with("AI companions are") && own.contains("kept like messages") && !own.contains("sent to"), "{own}");
        assert!(notice(&["@everyone **x**\n"], None, true).contains("**\\@everyone \\*\\*x\\*\\*** is"));
    }
}
