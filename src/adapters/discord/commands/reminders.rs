//! `/tertulia reminders` and `/tertulia timezone`: the open reminders of the user in the channel, each with a button to cancel it, and the zone in which
//! the user's times are read.

use serde_json::Value;
use twilight_model::channel::message::component::ButtonStyle;

use super::interaction::{CANCEL_REMINDER, ChannelContext};
use super::quoting::verbatim;
use super::setup::buttons;
use super::text::{Text, say};
use super::words::when;
use super::{Answer, CommandHandler};
use crate::domain::text::first;
use crate::ports::backend::Refused;
use crate::ports::backend::reminder_service::ReminderView;
use crate::snowflake::Snowflake;

/// The limit of buttons in a row (Discord's documentation, "Component Reference", "Action Row").
const ROW: usize = 5;
/// The longest quotation of a reminder, in characters. All of them fit into one message.
const LONGEST_QUOTED: usize = 60;
/// What a user gives as the zone to have that of the server.
const DEFAULT: &str = "default";

impl CommandHandler {
    /// Lists the user's reminders in this channel, after it cancelled the one with this number.
    pub(super) async fn reminders(
        &self,
        cancel: Option<u64>,
        here: &ChannelContext,
        person: Snowflake,
        language: &str,
    ) -> Result<Answer, Answer> {
        let Some(room) = self.room(here).await? else { return Ok(Answer::Done(none())) };
        let me = person.person();
        if let Some(number) = cancel {
            match self.backend.reminders.cancel_reminder(&room.id, number, Some(&me)).await {
                // It was due, or was cancelled before. The list shows what is left.
                Ok(()) | Err(Refused::NotFound(_)) => {}
                Err(refused) => return Err(refused.into()),
            }
        }
        let reminders = self.backend.reminders.reminders(&room.id, Some(&me)).await?;
        let line = |one: &ReminderView| {
            Text::Plain(format!("`{}` {}: {}", one.id, when(one.due.0), verbatim(first(&one.text, LONGEST_QUOTED))))
        };
        let text = match reminders.is_empty() {
            true => none(),
            false => Text::lines([say!("**Your reminders in this channel**")].into_iter().chain(reminders.iter().map(line))),
        };
        let button = |one: &ReminderView| {
            (ButtonStyle::Secondary, say!("Cancel {number}", number = one.id.to_string()), format!("{CANCEL_REMINDER}{}", one.id))
        };
        let cancels: Vec<_> = reminders.iter().map(button).collect();
        let components: Vec<Value> = cancels.chunks(ROW).take(ROW).map(|row| buttons(row, language)).collect();
        Ok(Answer::Rich { text, embeds: Vec::new(), components })
    }

    /// Shows the user's time zone, or sets it.
    pub(super) async fn time_zone(&self, zone: Option<&str>, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let (guild, me) = (here.guild_id(), person.person());
        if let Some(zone) = zone {
            let zone = Some(zone).filter(|zone| !zone.eq_ignore_ascii_case(DEFAULT));
            self.backend.reminders.set_time_zone(&guild, &me, zone).await?;
        }
        let zone = self.backend.reminders.time_zone(&guild, &me).await?;
        Ok(say!(
            "Your times for reminders are read in the zone {zone}. `/tertulia timezone zone:…` changes that, with the name of your zone.",
            zone = verbatim(&zone)
        ))
    }
}

fn none() -> Text {
    say!("You have no open reminders in this channel. To set one, ask a companion: “remind me in ten minutes to call Ben”.")
}
