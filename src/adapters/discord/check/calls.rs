//! Checks the voice channels in `discord.voice_channels`: whether they are voice channels, and whether the bot may enter them and speak there.

use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;

use super::super::permissions::{is_voice, missing_in_call};
use super::super::snowflake::Snowflake;
use super::super::wire::ServerChannel;
use super::{Checking, Line, Named};

const COPY_ID: &str =
    "In Discord, User Settings > Advanced > Developer Mode > on; then right-click the voice channel > Copy Channel ID.";

impl Checking<'_> {
    /// Checks the configured channels of one server.
    pub(super) fn calls(
        &mut self,
        server: &Named,
        channels: &[ServerChannel],
        permissions: impl Fn(&ServerChannel) -> Permissions,
    ) {
        let settings = self.settings;
        for id in settings.voice_channels.iter().filter_map(|id| id.parse::<Snowflake>().ok()) {
            let Some(listed) = channels.iter().find(|channel| channel.id == id) else { continue };
            self.found_calls.insert(id);
            let named = Named::new(id, listed.name.as_deref().unwrap_or_default());
            self.add_line(line(listed.kind, permissions(listed)).of(server).in_channels(vec![named]));
        }
    }

    /// Reports configured channels that are in none of the checked servers. `checked` is the number of these servers.
    pub(super) fn unknown_calls(&mut self, checked: usize) {
        let settings = self.settings;
        let are_all = self.report.figures.servers.is_some_and(|servers| servers <= checked as u64);
        for id in settings.voice_channels.iter().filter_map(|id| id.parse::<Snowflake>().ok()) {
            if checked == 0 || self.found_calls.contains(&id) {
                continue;
            }
            let text = "discord.voice_channels names a channel that the bot does not see";
            let allow = "If it is a voice channel: Edit Channel > Permissions > add the bot > allow View Channel.";
            self.add_line(if are_all {
                Line::problem("voice", format!("{text}: {id}")).click(format!("{allow} Otherwise name another one. {COPY_ID}"))
            } else {
                Line::warning("voice", format!("{text} in the servers that are checked: {id}"))
                    .click(format!("If it is in another server, check that one with --server ID. {allow}"))
            });
        }
    }
}

/// The result for a configured channel.
fn line(kind: ChannelType, permissions: Permissions) -> Line {
    let is_stage = kind == ChannelType::GuildStageVoice;
    if !is_voice(kind) {
        let text = "discord.voice_channels names a channel that has no call";
        return Line::problem("voice", text).click(format!("Name a voice channel instead. {COPY_ID}"));
    }
    match missing_in_call(permissions, is_stage) {
        Some(need) => {
            let (problem, click) = need.explanation();
            Line::problem("voice", problem).click(click)
        }
        None if is_stage => Line::warning("voice", "on a stage companions hear, and speak once a moderator lets the bot speak")
            .click("Once the bot has entered: open its menu on the stage > Invite to Speak."),
        None => Line::good("voice", "the bot can enter the call, hear and speak; the intent for that needs no switch"),
    }
}
