//! Companions in the calls of voice channels, with the real binary and people who are in the call.

use serde_json::json;

use super::commands::{companion, final_answer, rules, sub};
use super::counterpart::{Id, Permissions};
use super::home::Home;
use crate::harness::{Premises, Server};

/// The frame that stands for silence.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

/// Opus packets of somebody who says one sentence, as Discord's clients send them (src/adapters/audio/opus/vectors/README.md).
pub fn sentence() -> Vec<Vec<u8>> {
    let mut bytes: &[u8] = include_bytes!("../../../src/adapters/audio/opus/vectors/browser.vector");
    let mut take = |size: usize| {
        let (head, rest) = bytes.split_at_checked(2)?;
        let (taken, rest) = rest.split_at(size * usize::from(u16::from_le_bytes([head[0], head[1]])));
        bytes = rest;
        Some(taken.to_vec())
    };
    let mut packets = Vec::new();
    while let (Some(packet), Some(_)) = (take(1), take(2)) {
        packets.push(packet);
    }
    packets
}

/// A guild with a voice channel that the bot enters by itself, and Aria in it.
async fn scene() -> (Home, Id, Server, Premises) {
    let home = Home::with_rules(rules()).await;
    let kim = home.discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
    let harbour = home.discord.voice_channel(home.guild, "harbour");
    let premises = Premises::shipped().for_discord(&home.discord).with("discord.voice_channels", &format!("[\"{harbour}\"]"));
    let premises = premises.with("voice.read_text_aloud", "true");
    let server = premises.start().await;
    home.discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    home.discord.sessions(1).await;
    let welcome = final_answer(&home.discord, kim, harbour, sub("join", json!([companion("aria")]))).await;
    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    (home, harbour, server, premises)
}

#[tokio::test]
async fn people_in_a_voice_channel_are_heard_and_answered_aloud() {
    let (home, harbour, server, _premises) = scene().await;
    let mut watch = server.watch(&format!("discord:{harbour}"), Some(0)).await;
    let ana = home.discord.call(home.ana, harbour).await;
    home.discord.bot_called(harbour).await;
    ana.grouped(2).await;

    ana.talk(&sentence()).await;
    let spoken = watch.event_that("message", |event| event["modality"] == "voice").await;
    assert_eq!(spoken["from"], "Ana");
    assert!(spoken["text"].as_str().is_some_and(|text| text.starts_with("(speech, ")), "{spoken}");

    // The built-in ears know no words. What is typed is read aloud here.
    home.discord.say(home.ana, harbour, "hey aria, how was your day?");
    let heard = ana.heard_from(home.bot, 25).await;
    assert!(
        heard.iter().all(|frame| frame.end_to_end || frame.frame == SILENCE),
        "nothing is sent without end-to-end encryption"
    );
    let played = watch.event("sentence_played").await;
    assert_eq!(played["companion"], "aria", "{played}");
}
