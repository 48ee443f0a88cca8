//! Application commands over REST.
//!
//! <https://docs.discord.com/developers/interactions/application-commands#create-global-application-command>

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::commands::check;
use super::super::{Command, Id, Refusal, State};
use super::{Call, Reply, ok};

const DAY: Duration = Duration::from_secs(24 * 3_600);

impl State {
    pub fn commands(&mut self, call: &Call) -> Reply {
        let (application, guild) = (call.id("application"), call.found.id("guild"));
        self.check_scope(application, guild)?;
        // All commands are global ones.
        let commands = self.world.commands.iter().filter(|_| guild.is_none());
        ok(commands.map(|command| command.json(application, call.flag("with_localizations"))).collect())
    }

    pub fn create_command(&mut self, call: &Call) -> Reply {
        let application = call.id("application");
        self.check_scope(application, None)?;
        check(&call.body, &[])?;
        let existing = self.put_command(&call.body)?;
        let command = self.world.commands.iter().find(|command| is_same(&command.data, &call.body));
        let json = command.map(|command| command.json(application, true));
        Ok((if existing { 200 } else { 201 }, json))
    }

    fn check_scope(&self, application: Id, guild: Option<Id>) -> Result<(), Refusal> {
        if application != self.world.application.id {
            return Err(Refusal::new(403, 20012, "You are not authorized to perform this action on this application"));
        }
        if let Some(guild) = guild {
            // An unknown guild gets the same answer as one that the application is not in.
            self.world.joined_guild(guild).map_err(|_| Refusal::missing_access())?;
            if self.world.without_commands.contains(&guild) {
                return Err(Refusal::missing_access());
            }
        }
        Ok(())
    }

    /// Creates a command, or changes the one of this name and type. Returns whether it existed. Only new ones count towards the daily limit.
    fn put_command(&mut self, data: &Value) -> Result<bool, Refusal> {
        let version = self.world.new_id();
        let existing = self.world.commands.iter_mut().find(|command| is_same(&command.data, data));
        if let Some(existing) = existing {
            if existing.data != *data {
                existing.data = data.clone();
                existing.version = version;
            }
            return Ok(true);
        }
        let kind = data["type"].as_u64().unwrap_or(1);
        let most = if kind == 1 { 100 } else { 5 };
        if self.world.commands.iter().filter(|command| command.kind() == kind).count() >= most {
            return Err(Refusal::new(400, 30032, "Maximum number of application commands reached"));
        }
        let creates = &mut self.command_creates;
        creates.retain(|created| created.elapsed() < DAY);
        if creates.len() >= self.rules.command_creates {
            return Err(Refusal::new(400, 30034, "Max number of daily application command creates has been reached (200)"));
        }
        creates.push(Instant::now());
        let id = self.world.new_id();
        self.world.commands.push(Command { id, version, data: data.clone() });
        Ok(false)
    }
}

/// Whether two commands have the same name and type.
fn is_same(one: &Value, other: &Value) -> bool {
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(1);
    one["name"] == other["name"] && kind(one) == kind(other)
}
