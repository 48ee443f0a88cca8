//! Texts in Discord's errors cannot forge lines of the log, and cannot control a terminal.

use futures_util::future::join_all;
use serde_json::json;

use super::super::counterpart::{Does, On};
use super::town::Town;
use crate::harness::hostile::{HOSTILE, controls_terminal, is_log_line};

/// An error code that Discord does not define, so that only the message of the error describes it.
const UNKNOWN_CODE: u32 = 59_999;

#[tokio::test(flavor = "multi_thread")]
async fn texts_from_discord_cannot_forge_log_lines_or_control_the_terminal() {
    let refusal = || Does::Says(403, json!({ "code": UNKNOWN_CODE, "message": HOSTILE }));
    let logs = [("text", "info,tertulia=trace"), ("json", "info,tertulia=trace"), ("text", "trace"), ("json", "trace")];
    // Side by side, because each waits for the pause between two sessions.
    let runs = logs.map(async |(form, levels)| {
        let town = Town::small().await;
        let (discord, channel) = (&town.discord, town.channels[0].clone());
        let premises = town.premises().with("telemetry.log_format", form).with("telemetry.log", levels);
        discord.spoil_next(1, On::route("commands"), refusal());
        let server = premises.start().await;
        // The registration fails, and succeeds with the next session.
        server.logs("cannot be registered").await;
        discord.sessions(1).await;
        discord.close(0, 4_009, HOSTILE);
        server.logs("(code 4009)").await;
        town.load_rooms().await;

        // Malformed frames and unreadable events.
        discord.send_text(0, &format!("{HOSTILE} {{"));
        server.logs("could not be parsed and were skipped").await;
        for (kind, data) in [
            (HOSTILE, json!({ "id": HOSTILE })),
            ("MESSAGE_CREATE", json!({ "id": HOSTILE, "channel_id": channel.id.to_string(), "content": HOSTILE })),
            ("INTERACTION_CREATE", json!({ "id": "5", "token": HOSTILE, "type": HOSTILE })),
            ("GUILD_CREATE", json!({ "id": HOSTILE, "name": HOSTILE, "unavailable": HOSTILE })),
        ] {
            discord.send_text(0, &json!({ "op": 0, "s": null, "t": kind, "d": data }).to_string());
        }
        // A statement that cannot be posted.
        let fault = discord.spoil(On::route("execute_webhook"), refusal());
        discord.say(channel.first_person(), channel.id, "Aria, are you there?");
        server.logs("companions cannot speak in this channel").await;
        discord.lift(fault);

        let room = format!("discord:{}", channel.id);
        let refused = discord.spoil(On::default(), refusal());
        let mut shown = String::new();
        for command in [&["why", &room][..], &["why", &room, "aria"], &["health"], &["usage"], &["discord", "check"]] {
            let ran = premises.run(command).await;
            shown += &format!("{}{}", ran.stdout, ran.stderr);
        }
        discord.lift(refused);
        discord.close(0, 4_000, HOSTILE);
        server.logs("(code 4000)").await;
        let log = server.stop().await;

        assert!(!log.contains(controls_terminal), "{log:?}");
        assert!(!shown.contains(controls_terminal), "{shown:?}");
        assert!(log.contains("desrever") && shown.contains("desrever"), "Discord's message is shown: {shown}");
        for line in log.lines() {
            assert!(is_log_line(line, form), "{line:?}");
            // Only at trace level may other crates log what they exchange with Discord.
            assert!(levels == "trace" || !line.contains("forged") || line.contains("Discord said"), "{line:?}");
        }
    });
    join_all(runs).await;
}
