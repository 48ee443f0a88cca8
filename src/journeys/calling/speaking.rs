//! Spoken replies through the real actors: whatever dies around them, no word is lost, and nothing is said twice.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::super::mouth::{Ledger, Shared};
use super::super::world::{World, purpose};
use super::*;
use crate::domain::conversation::Aloud;
use crate::domain::id::Ticket;
use crate::domain::question_context::Purpose;
use crate::domain::trigger::Trigger;
use crate::domain::voice::interruption::{self, Said, Stop, Words};

const QUESTION: &str = "Ari, when does the tide turn?";
const ANSWER: &str = "The tide turns at five. Then we walk to the pier. Bring a coat.";

/// What happens beside the question and its answer. Times count from the question.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Besides {
    Nothing,
    /// Ben talks into the answer for so long that it pauses, and says so little that it resumes.
    Remark,
    /// Ben stops the answer.
    Stop,
}

/// What a talk looked like.
struct Talk {
    world: World,
    began: Instant,
    ledger: Shared,
}

impl Talk {
    async fn begin(besides: Besides) -> Self {
        let world = call(&["ana", "ben"]).await;
        // Whoever is addressed answers.
        world.side.answer_by(|request| {
            let is_asked = matches!(purpose(request), Purpose::Vote { trigger: Trigger::DirectAddress });
            Some(Ok(if is_asked { "Me.\nYES".into() } else { "Not me.\nNO".into() }))
        });
        world.main.answers([Ok(ANSWER)]);
        let ledger = Shared::default();
        play_aloud(&world, ledger.clone());
        let began = Instant::now();
        says(&world, "ana", QUESTION).await;
        if besides != Besides::Nothing {
            tokio::spawn(interrupt(inbound(&world), world.context.clock.clone(), began, besides));
        }
        Self { world, began, ledger }
    }

    fn ledger(&self) -> Ledger {
        self.ledger.lock().clone()
    }

    /// When something was first to be done for the reply.
    fn moment_of(&self, is_it: impl Fn(&Aloud) -> bool) -> Duration {
        let ledger = self.ledger();
        let (at, ..) = ledger.told.iter().find(|(.., aloud)| is_it(aloud)).unwrap_or_else(|| panic!("{:#?}", ledger.told));
        *at - self.began
    }

    /// No word is lost, nothing is said twice, and the channel goes on answering. Returns what became of the answer.
    async fn check(self, context: &str) -> String {
        let world = &self.world;
        says(world, "ana", "Ari, are you there?").await;
        world.pass(60.0).await;
        let (events, ledger) = (events(world).await, self.ledger());
        let mut in_messages: BTreeMap<Seq, u32> = BTreeMap::new();
        let mut statements: BTreeMap<Ticket, Vec<_>> = BTreeMap::new();
        for recorded in &events {
            match &recorded.event {
                Event::Segment(segment) if segment.kind.is_message() => drop(in_messages.insert(recorded.seq, 0)),
                Event::Said { message, reply: Some(ticket), .. } => statements.entry(*ticket).or_default().push(message),
                Event::Said { message, .. } => {
                    for segment in message.speech.iter().flat_map(|speech| &speech.segments) {
                        *in_messages.entry(*segment).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        assert!(in_messages.values().all(|times| *times == 1), "{context}: {in_messages:?}");
        assert_eq!(ledger.faults, [""; 0], "{context}");
        let mut outcome = "nothing";
        for (ticket, messages) in &statements {
            let [message] = messages[..] else { panic!("{context}: {ticket} is said twice: {messages:?}") };
            assert_eq!(message.modality, Modality::Voice, "{context}");
            let performance = ledger.performance(&lobby().channel, *ticket).expect("a spoken statement was played");
            assert!(performance.can_be_heard(&message.text), "{context}: {:?} was heard of {performance:?}", message.text);
        }
        for performance in &ledger.performances {
            let is_heard = performance.played > Duration::ZERO;
            assert!(!is_heard || performance.text() == ANSWER, "{context}");
        }
        let question = events.iter().find_map(|recorded| match &recorded.event {
            Event::ReplyOwed { ticket, .. } => Some(*ticket),
            _ => None,
        });
        if let Some([answer]) = question.and_then(|question| statements.get(&question)).map(|answers| &answers[..]) {
            outcome = if *answer.text == *ANSWER { "whole" } else { "cut" };
        }
        let last = statements.values().last().map(|messages| messages[0].text.to_string());
        assert_eq!(last.as_deref(), Some(ANSWER), "{context}: the channel goes on answering");
        let conversation = look(&world.context, &lobby().channel).await.unwrap().conversation;
        assert_eq!((conversation.spoken_reply(), conversation.turns().owed_replies().count()), (None, 0), "{context}");
        outcome.to_owned()
    }
}

/// Ben talks into the answer, a second after it begins.
async fn interrupt(events: Inbound, clock: Arc<dyn crate::ports::clock::Clock>, began: Instant, besides: Besides) {
    tokio::time::sleep_until(began + Duration::from_millis(4_500)).await;
    let (channel, user, started) = (lobby().channel, user("ben"), clock.now());
    events.noticed(&channel, Notice::Call(utterance::Input::Started { user: user.clone(), started }));
    let hop = Duration::from_millis(50);
    for _ in 0..14 {
        let from = clock.now();
        tokio::time::sleep(hop).await;
        events.noticed(&channel, Notice::Voiced { user: user.clone(), from, to: clock.now() });
    }
    let text = if besides == Besides::Stop { "stop" } else { "it was six" };
    let stop = if besides == Besides::Stop { Stop::Alone } else { Stop::None };
    let words = Words { said: Said::Words, stop, addressed: Vec::new() };
    events.noticed(&channel, Notice::Partial { user: user.clone(), started, words });
    let ended = clock.now();
    events.noticed(&channel, Notice::Call(utterance::Input::Ended { user, ended }));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let segment = InboundSegment {
        id: "ben".into(),
        from: person("ben"),
        text: text.into(),
        is_verbatim: true,
        started,
        ended,
        voiced: Some(ended.since(started)),
        no_speech: None,
        confidence: None,
        provider: "rehearsal".into(),
        is_last: true,
        is_during_reply: true,
        played: PlayedWords::default(),
    };
    // Whoever connects the call reports it again until it is accepted.
    while events.heard(&lobby(), segment.clone()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Something dies at every step around a moment of a talk. Returns how often the answer came out how.
async fn kill_around(besides: Besides, moment: impl Fn(&Talk) -> Duration) -> BTreeMap<String, u32> {
    let talk = Talk::begin(besides).await;
    talk.world.pass(30.0).await;
    let due = moment(&talk);
    talk.check("nothing dies").await;
    let mut outcomes = BTreeMap::new();
    for steps in 0..STEPS {
        for kills_writer in [false, true] {
            let mut talk = Talk::begin(besides).await;
            step_after(talk.began + due, steps).await;
            talk.world.expect_deaths();
            if kills_writer {
                talk.world.kill(&WriterKey()).await;
            } else {
                talk.world.kill(&key()).await;
            }
            talk.world.pass(60.0).await;
            let outcome = talk.check(&format!("{besides:?}, killed after {steps}, the writer: {kills_writer}")).await;
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn no_death_around_a_hand_over_loses_or_doubles_the_answer() {
    let outcomes = kill_around(Besides::Nothing, |_| Duration::from_secs(1)).await;

    assert_eq!(outcomes, [("whole".to_owned(), 48)].into());
}

#[tokio::test(start_paused = true)]
async fn no_death_around_the_start_of_a_reply_costs_any_of_it() {
    let outcomes =
        kill_around(Besides::Nothing, |talk| talk.moment_of(|aloud| matches!(aloud, Aloud::Play(interruption::Effect::Speak))))
            .await;

    assert_eq!(outcomes, [("whole".to_owned(), 48)].into());
}

#[tokio::test(start_paused = true)]
async fn no_death_around_the_start_of_a_later_sentence_a_pause_or_a_resume_says_anything_twice() {
    type IsIt = fn(&Aloud) -> bool;
    let moments: [(Besides, IsIt); 3] = [
        (Besides::Nothing, |aloud| matches!(aloud, Aloud::Start { sentence: 2 })),
        (Besides::Remark, |aloud| matches!(aloud, Aloud::Play(interruption::Effect::Pause))),
        (Besides::Remark, |aloud| matches!(aloud, Aloud::Play(interruption::Effect::Resume { .. }))),
    ];
    for (besides, is_it) in moments {
        let outcomes = kill_around(besides, |talk| talk.moment_of(is_it)).await;

        assert!(outcomes["cut"] > 0, "{outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_death_around_a_cut_says_anything_twice() {
    let outcomes =
        kill_around(Besides::Stop, |talk| talk.moment_of(|aloud| matches!(aloud, Aloud::Play(interruption::Effect::Ended(_)))))
            .await;

    assert_eq!(outcomes, [("cut".to_owned(), 48)].into());
}
