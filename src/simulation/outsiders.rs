//! The programs that play external companions. They vote and speak, once, twice, too late, or not.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::dice::Dice;
use super::life::Life;
use super::plan::EXTERNAL;
use crate::ports::backend::live::Watched;

impl Life {
    /// Starts one program for each room, for as long as the process lives.
    pub(super) fn play_externals(&self) {
        for room in 0..self.props.stage.plan.rooms.len() {
            let life = self.clone();
            tokio::spawn(async move { life.play(room).await });
        }
    }

    async fn play(&self, room: usize) {
        let (stage, id) = (&self.props.stage, self.room(room));
        let mut dice = Dice::new(stage.plan.seed ^ stage.life() << 32 ^ room as u64, "outsider");
        let mut round = Value::Null;
        loop {
            stage.pass(Duration::from_secs(1)).await;
            let Ok(mut live) = self.backend.rooms.live(Watched::Room(id.clone(), None)).await else { continue };
            while let Some(Ok(item)) = live.next().await {
                if let Some(word) = stage.plan.foreign_word(&stage.plan.guilds[stage.plan.rooms[room].guild].id, &item) {
                    stage.violate(format!("a watcher of room {room} sees {word:?}, a word of another guild"));
                }
                let Ok(event) = serde_json::from_str::<Value>(&item) else { continue };
                let is_asked = || event["asked"].as_array().is_some_and(|asked| asked.iter().any(|who| who == EXTERNAL));
                match event["event"].as_str() {
                    Some("round_opened") if is_asked() => {
                        round = event["message_id"].clone();
                        self.vote(room, &round, &mut dice);
                    }
                    Some("respond") if event["companion"] == EXTERNAL => self.speak(room, &round, &mut dice),
                    _ => {}
                }
            }
        }
    }

    fn vote(&self, room: usize, round: &Value, dice: &mut Dice) {
        let delay = dice.millis(1, 4_000);
        let decision = if dice.chance(0.6) { "speak" } else { "listen" };
        let closing = if dice.chance(0.1) { "terminal" } else { "none" };
        let message = match round.as_u64() {
            Some(seq) if dice.chance(0.9) => seq.to_string(),
            _ => "1".to_owned(),
        };
        let state = json!({
            "from": EXTERNAL, "messageId": message, "state": decision, "importance": dice.below(11), "selected": dice.chance(0.2),
            "closing": closing,
        });
        let times = *dice.pick(&[0, 1, 1, 1, 2]);
        let (life, id) = (self.clone(), self.room(room));
        tokio::spawn(async move {
            life.props.stage.pass(delay).await;
            for _ in 0..times {
                let Ok(state) = serde_json::from_value(state.clone()) else { return };
                if life.backend.messages.vote(&id, state).await.is_ok() {
                    life.props.stage.reach("external vote");
                }
            }
        });
    }

    fn speak(&self, room: usize, round: &Value, dice: &mut Dice) {
        let delay = dice.millis(1, 20_000);
        let times = *dice.pick(&[0, 1, 1, 2]);
        let word = self.props.stage.plan.guilds[self.props.stage.plan.rooms[room].guild].word;
        let words =
            json!({ "from": EXTERNAL, "message_id": round, "text": format!("Zed says {word} {}.", dice.next() % 1_000_000) });
        let (life, id) = (self.clone(), self.room(room));
        tokio::spawn(async move {
            life.props.stage.pass(delay).await;
            for _ in 0..times {
                let Ok(words) = serde_json::from_value(words.clone()) else { return };
                if life.backend.messages.speak(&id, words).await.is_ok() {
                    life.props.stage.reach("external statement");
                }
            }
        });
    }
}
