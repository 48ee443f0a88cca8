//! Offers help to a person who may be at risk, once the decision is committed (docs/design/safety.md N-10).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use crate::domain::conversation::Conversation;
use crate::domain::id::{PersonId, Seq};
use crate::ports::chat_platform::{Help, crisis_text, insist};
use crate::telemetry::plain::Plain;

/// The time after which the same person is offered help again.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// The offers of help since the channel was started.
#[derive(Default)]
pub(super) struct HelpOffers {
    messages: BTreeSet<Seq>,
    people: HashMap<PersonId, Instant>,
}

impl HelpOffers {
    /// Offers help to the author of a message on its platform. The console shows help by itself.
    pub(super) fn offer(&mut self, message: Seq, conversation: &Conversation, channel: &ChannelContext) {
        let Some(person) = conversation.author_of(message).filter(|_| self.messages.insert(message)) else { return };
        let (guild, shown) = (Plain(channel.key.guild.as_str()), channel.shown());
        tracing::info!(%guild, channel = %shown, message = message.0, "somebody may be at risk, and is shown where to find help instead of an answer");
        let Some(platform) = channel.platform() else { return };
        self.people.retain(|_, offered| offered.elapsed() < AGAIN);
        if self.people.contains_key(&person) {
            return;
        }
        self.people.insert(person.clone(), Instant::now());
        let channel = channel.clone();
        tokio::spawn(async move {
            let settings = channel.context.in_force();
            let spoken = channel.context.memberships.language(&channel.key.channel);
            let language = spoken.as_deref().unwrap_or(&settings.speech.language);
            let text = crisis_text(&settings.safety, language);
            let (guild, tell) = (&channel.key.guild, settings.safety.tell);
            let help = Help { guild, channel: &channel.key.channel, person: &person, message, text: &text, tell };
            if let Err(error) = insist(|| platform.offer_help(&help)).await {
                let (guild, shown) = (Plain(guild.as_str()), channel.shown());
                tracing::error!(%guild, channel = %shown, message = message.0, %error, "help could not be offered to somebody who may be at risk: look after this person, and allow the bot to send messages there");
            }
        });
    }
}
