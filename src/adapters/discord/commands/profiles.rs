//! `/tertulia companion`: shows the profiles of the companions that a server may use.

use serde_json::{Value, json};

use super::choosing::{as_member, find};
use super::interaction::ChannelContext;
use super::quoting::verbatim;
use super::registered::{SPOKEN_TO, tier_sentence};
use super::text::{Text, say};
use super::words::{self, channel, listed};
use super::{Answer, CommandHandler};
use crate::domain::text::shortened;
use crate::ports::backend::room::{CompanionView, Room};
use crate::settings::companion::QuietHours;
use crate::snowflake::Snowflake;

/// The limit of profiles in an answer, which is Discord's limit of embeds in a message.
const MOST_PROFILES: usize = 10;
/// The limits of characters of a description, and of listed channels, so that all profiles together have less than Discord's limit of 6,000
/// characters (Discord's documentation, "Message Resource", "Embed Limits").
const LONGEST_DESCRIPTION: usize = 200;
const MOST_CHANNELS: usize = 6;

impl CommandHandler {
    pub(super) async fn profiles(&self, typed: Option<&str>, here: &ChannelContext, language: &str) -> Result<Answer, Answer> {
        let mut all = self.visible(here).await?;
        if let Some(typed) = typed {
            let id = self.configured(typed, here).await?.id;
            all.retain(|companion| companion.id == id);
        }
        let rooms = self.backend.rooms.of_guild(&here.guild_id()).await?.rooms;
        let profiles = all.iter().take(MOST_PROFILES).map(|companion| self.profile(companion, &rooms, here, language));
        let embeds: Vec<Value> = profiles.collect();
        let text = match (all.len(), all.get(MOST_PROFILES..)) {
            (0, _) => say!("There is no companion yet. The operator of the bot can configure some."),
            (_, Some([_, ..])) => {
                let others = all.iter().skip(MOST_PROFILES).map(|companion| &companion.name);
                say!("There are more: {names}. `/tertulia companion companion:…` shows one.", names = listed(others))
            }
            _ => words::blank(),
        };
        Ok(Answer::Rich { text, embeds, components: Vec::new() })
    }

    /// The profile of a companion.
    fn profile(&self, companion: &CompanionView, rooms: &[Room], here: &ChannelContext, language: &str) -> Value {
        let member = |room: &Room| find(&room.companions, companion.id.as_str()).filter(|one| one.id == companion.id).cloned();
        let is_shown = |room: &&Room| {
            // A channel that not everybody can see is shown only there, and to those who manage the server.
            let channel = room.id.channel();
            room.inherits_from.is_none()
                && (channel == here.channel.channel()
                    || here.user_may_manage_server()
                    || self.discord.cache().is_public(&channel))
        };
        let places: Vec<_> = rooms.iter().filter(is_shown).filter(|room| member(room).is_some()).collect();
        let mut channels: Vec<_> =
            places.iter().filter_map(|room| Some(channel(Snowflake::of_channel(&room.id.channel())?.get()))).collect();
        let more = channels.len().saturating_sub(MOST_CHANNELS);
        channels.truncate(MOST_CHANNELS);
        let place = if here.is_direct() { say!("In this conversation") } else { say!("Where it is") };
        let at = match (here.is_direct(), channels.as_slice()) {
            (_, []) => say!("In no public channel. `/tertulia join` adds it."),
            (true, _) => say!("Yes"),
            (false, channels) if more == 0 => Text::Plain(channels.join(", ")),
            (false, channels) => Text::sentences([Text::Plain(channels.join(", ")), say!("and {count} more", count = more)]),
        };
        // What holds here, otherwise what the companion has by itself.
        let in_this_channel = places.iter().find(|room| room.id.channel() == here.channel.channel());
        let (member, room_hours) = match in_this_channel.and_then(|room| member(room).map(|member| (member, room.quiet_hours))) {
            Some((member, hours)) => (member, hours.unwrap_or_default()),
            None => (as_member(companion.clone()), QuietHours::Never),
        };
        let hours = if room_hours == QuietHours::Never { member.quiet_hours } else { room_hours };
        let tier = if hours == QuietHours::Always { SPOKEN_TO } else { &member.interjection };
        let field = |name: Text, value: Text, is_inline: bool| json!({ "name": name.in_language(language), "value": value.in_language(language), "inline": is_inline });
        let mut profile = json!({
            "title": verbatim(&companion.name),
            "description": verbatim(&shortened(&companion.chattiness, LONGEST_DESCRIPTION)),
            "fields": [
                field(place, at, false),
                field(say!("How much it talks"), tier_sentence(tier, &companion.name), true),
                field(say!("Quiet hours"), quiet(hours), true),
            ],
            "footer": { "text": say!("AI companion: no human writes its messages").in_language(language) },
        });
        if let Some(url) = &companion.public_picture {
            profile["thumbnail"] = json!({ "url": url });
        }
        profile
    }
}

fn quiet(hours: QuietHours) -> Text {
    match hours {
        QuietHours::Never => say!("None"),
        QuietHours::Always => say!("At all times"),
        hours => hours.to_string().into(),
    }
}
