//! The first message in a server: who invites the bot reads once how companions come into a channel.

use std::sync::Arc;
use std::time::Duration;

use super::super::commands::menus::BEGIN;
use super::super::commands::text::{Text, say};
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::SharedIntake;

/// The note of a guild that has had the message.
const NOTE: &str = "discord/welcomed";
/// A guild that the bot joined longer ago was there before this server started.
const RECENT: Duration = Duration::from_secs(10 * 60);

impl SharedIntake {
    /// Posts the first message in the channel that the guild has chosen for such messages, if the bot was invited just now, and no companion is there
    /// from an earlier invitation. It is posted at most once.
    pub(super) fn welcome(self: &Arc<Self>, reported: &wire::Guild) {
        let (Some(channel), Some(joined_at)) = (reported.system_channel_id, reported.joined_at()) else { return };
        if self.discord.now().since(joined_at) > RECENT || self.has_members(Some(reported.id)) {
            return;
        }
        let (shared, guild, language) = (Arc::clone(self), reported.id, reported.preferred_locale.clone());
        tokio::spawn(async move { shared.post_welcome(guild, channel, &language).await });
    }

    async fn post_welcome(&self, guild: Snowflake, channel: Snowflake, language: &str) {
        let of = guild.guild();
        match self.notes.read(Some(&of), NOTE).await {
            Ok(None) => {}
            Ok(Some(_)) => return,
            Err(error) => return tracing::debug!(%guild, %error, "it is unknown whether a server was welcomed; it is not"),
        }
        // Noted first: a message that may be missing is better than one that is there twice.
        if let Err(error) = self.notes.write(Some(&of), vec![(NOTE.to_owned(), Some(Vec::new()))]).await {
            return tracing::debug!(%guild, %error, "a server is not welcomed, because that could not be noted");
        }
        let button = (say!("Set up").in_language(language), BEGIN.to_owned());
        match self.discord.post_with_buttons(channel, &text().in_language(language), &[button], &format!("w{guild}")).await {
            Ok(()) => tracing::info!(%guild, "the bot was invited, and has said how companions come into a channel"),
            Err(error) => {
                tracing::info!(%guild, %error, "the bot was invited, and could not say how companions come into a channel")
            }
        }
    }
}

fn text() -> Text {
    Text::lines([
        say!(
            "Hello! I bring **AI companions** into channels of this server. They read along where somebody has added them, and decide on their own \
             when to say something."
        ),
        say!(
            "**Set up:** press the button, or use `/tertulia setup`. Choose who is in which channels and how much they talk. This is for members who \
             may manage channels; only you see your menu. It names missing permissions."
        )
        .bullet(),
        say!("**Who there is**, with pictures: `/tertulia companion`").bullet(),
        say!("**What they are**, who runs them, and what is kept: `/tertulia about`").bullet(),
        say!("**Everything else:** `/tertulia help`").bullet(),
        say!("Nobody is in a channel yet. Until somebody adds a companion, nothing that is said here is kept."),
    ])
}
