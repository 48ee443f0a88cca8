//! Tests of companions among themselves: votes, statements, and the end.

use super::*;
use crate::adapters::llm::rehearsal::kind::is_goodbye;
use crate::domain::answer::{Verdict, Words};
use crate::domain::repetition::{THRESHOLD, lexical, read_score};
use crate::domain::vote::{self, Vote};

/// The longest run of statements that the real rounds allow.
pub(super) const LOOP_GUARD: usize = 4;

const ROOM: [&str; 3] = ["Aria", "Bruno", "Cleo"];

const OPENINGS: [&str; 6] = [
    "what do you all think of night trains?",
    "good morning everyone",
    "I finally repaired the old telescope",
    "which board game shall we play on Friday?",
    "my sourdough has failed for the third time",
    "why does the street bend there?",
];

fn question_for(seat: &str, purpose: Purpose, lines: &[Line]) -> Request {
    let mut question = request(purpose, "");
    question.companion = Some(Asker { id: seat.to_lowercase().into(), name: seat.into() });
    question.messages = Message::prompt(format!("You are {}.", seat), question.user().into_owned());
    context(&mut question).newest = lines[lines.len().saturating_sub(Line::MOST)..].to_vec();
    question
}

async fn vote_of(model: &Rehearsal, seat: &str, trigger: Trigger, lines: &[Line]) -> Vote {
    let text = model
        .ask(&question_for(seat, Purpose::Vote { trigger }, lines), None)
        .await
        .expect("it always answers")
        .text()
        .into_owned();
    assert!(text.starts_with("{\"reason\":"), "{text}");
    vote::read(&text, Words::ENGLISH)
}

/// The messages after an opening, with the stage of each statement, until nobody wants to speak.
async fn talk(seed: u64, opening: &str) -> (Vec<Line>, Vec<Stage>) {
    turns(seed, vec![person("Ana", opening)], None).await
}

/// The same for an opening to nobody in particular: the companion whose lull ends first is asked first.
pub(super) async fn exchange(seed: u64, opening: &str) -> (Vec<Line>, Vec<Stage>) {
    let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
    let mut lines = vec![person("Ana", opening)];
    for seat in [ROOM[2], ROOM[0], ROOM[1]] {
        let vote = vote_of(&model, seat, Trigger::Lull, &lines).await;
        if vote.verdict == Verdict::Yes {
            let purpose = Purpose::Statement { trigger: Trigger::Lull, closing: vote.closing, tries: 0 };
            let text =
                model.ask(&question_for(seat, purpose, &lines), None).await.expect("it always answers").text().into_owned();
            lines.push(companion(seat, &text));
            let (lines, mut stages) = turns(seed, lines, Some(seat)).await;
            stages.insert(0, vote.closing);
            return (lines, stages);
        }
    }
    (lines, Vec::new())
}

async fn turns(seed: u64, mut lines: Vec<Line>, mut speaker: Option<&str>) -> (Vec<Line>, Vec<Stage>) {
    let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
    let mut stages = Vec::new();
    loop {
        let trigger = if speaker.is_some() { Trigger::Turn } else { Trigger::DirectAddress };
        let mut best: Option<(&str, Vote)> = None;
        for seat in ROOM.into_iter().filter(|seat| Some(*seat) != speaker) {
            let vote = vote_of(&model, seat, trigger, &lines).await;
            let rank = |vote: &Vote| (vote.selected, (vote.importance * 10.0) as u64);
            let wants = vote.verdict == Verdict::Yes && vote.closing < Stage::Terminal;
            if wants && best.as_ref().is_none_or(|(_, best)| rank(&vote) > rank(best)) {
                best = Some((seat, vote));
            }
        }
        let Some((seat, vote)) = best else { return (lines, stages) };
        let purpose = Purpose::Statement { trigger, closing: vote.closing, tries: 0 };
        let text = model.ask(&question_for(seat, purpose, &lines), None).await.expect("it always answers").text().into_owned();
        lines.push(companion(seat, &text));
        stages.push(vote.closing);
        speaker = Some(seat);
        assert!(lines.len() <= LOOP_GUARD + 1, "{lines:#?}");
    }
}

#[tokio::test]
async fn three_companions_end_their_talk_on_their_own_without_a_goodbye_or_repetition() {
    let mut lengths = [0; LOOP_GUARD + 1];
    for seed in 0..100 {
        for opening in OPENINGS {
            let (lines, stages) = talk(seed, opening).await;

            lengths[stages.len()] += 1;
            assert!(stages.iter().all(|stage| *stage == Stage::None), "{stages:?}");
            assert!(!lines.iter().any(|line| is_goodbye(&line.text)), "{lines:?}");
            let texts: Vec<&str> = lines[1..].iter().map(|line| &*line.text).collect();
            assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len(), "{texts:?}");
            assert!(lexical(&texts) <= THRESHOLD, "{texts:?}");
        }
    }

    let usual: usize = lengths[2..=3].iter().sum();
    assert!(usual > 400, "of 600 talks so many had 0, 1, 2, 3 and 4 statements: {lengths:?}");
    assert!(lengths[4] < 100, "{lengths:?}");
}

#[tokio::test]
async fn an_addressed_companion_votes_high_and_is_selected() {
    for seed in 0..20 {
        let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });

        let vote = vote_of(&model, ROOM[0], Trigger::DirectAddress, &[person("Ana", "look at that, Aria")]).await;

        assert!(vote.selected && vote.closing == Stage::None);
        assert!(vote.verdict == Verdict::No || vote.importance >= 8.0, "{vote:?}");
    }
}

#[tokio::test]
async fn the_longer_companions_talk_the_fewer_want_to_continue() {
    let mut yes_counts = [0; 4];
    for seed in 0..200 {
        let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
        let mut lines = vec![person("Ana", "night trains are running again")];
        for count in &mut yes_counts {
            lines.push(companion("Cleo", &format!("They are, all {} of them.", lines.len())));
            *count += usize::from(vote_of(&model, ROOM[0], Trigger::Turn, &lines).await.verdict == Verdict::Yes);
        }
    }

    assert!(yes_counts.is_sorted_by(|one, next| one >= next), "{yes_counts:?}");
    assert!(yes_counts[0] > 100 && yes_counts[3] == 0, "{yes_counts:?}");
}

#[tokio::test]
async fn nobody_speaks_after_a_goodbye() {
    let lines = [person("Ana", "good night"), companion("Aria", "Good night, Ana."), companion("Cleo", "Aria, wait!")];

    for seat in [ROOM[0], ROOM[1]] {
        let vote = vote_of(&rehearsal(0.0), seat, Trigger::Turn, &lines).await;

        assert_eq!((vote.verdict, vote.closing), (Verdict::No, Stage::Closing));
    }
}

#[tokio::test]
async fn a_goodbye_is_returned_also_after_a_late_statement() {
    let lines = [person("Ana", "ok, good night everybody"), companion("Bruno", "One step at a time.")];
    let purpose = Purpose::Statement { trigger: Trigger::Turn, closing: Stage::None, tries: 0 };

    let answer = rehearsal(0.0).ask(&question_for(ROOM[2], purpose, &lines), None).await.expect("it always answers");

    assert!(is_goodbye(&answer.text()), "{}", answer.text());
}

#[tokio::test]
async fn a_new_message_by_a_person_resets_the_closing_stage() {
    let lines = [person("Ana", "hm"), companion("Aria", "Good night, all."), person("Ana", "wait, Aria, one more thing!")];

    let vote = vote_of(&rehearsal(0.0), ROOM[0], Trigger::DirectAddress, &lines).await;

    assert_eq!((vote.verdict, vote.closing), (Verdict::Yes, Stage::None));
}

#[tokio::test]
async fn a_statement_answers_another_companion_and_repeats_nothing() {
    let mut lines = vec![person("Ana", "I repaired the telescope"), companion("Cleo", "A telescope with a hat!")];
    let mut named = 0;
    for _ in 0..4 {
        let purpose = Purpose::Statement { trigger: Trigger::Turn, closing: Stage::None, tries: 0 };
        let text = rehearsal(0.0)
            .ask(&question_for(ROOM[0], purpose, &lines), None)
            .await
            .expect("it always answers")
            .text()
            .into_owned();

        assert!(lines.iter().all(|line| *line.text != *text), "{text}");
        named += usize::from(text.contains("Cleo"));
        lines.insert(lines.len() - 1, companion("Bruno", &text));
    }
    assert!(named > 0, "{lines:?}");
}

#[tokio::test]
async fn a_judgement_is_the_lexical_score() {
    let lines = [person("Ana", "So true!"), companion("Aria", "So true!"), companion("Cleo", "So true, so true!")];

    let text = rehearsal(0.0)
        .ask(&question_for("", Purpose::Judgement, &lines), None)
        .await
        .expect("it always answers")
        .text()
        .into_owned();

    let score = lexical(&["So true!", "So true!", "So true, so true!"]);
    assert_eq!(read_score(&text), score, "{text}");
}

#[tokio::test]
async fn several_companions_that_are_asked_together_decide_as_they_do_alone() {
    for seed in 0..20 {
        let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
        for opening in OPENINGS {
            let lines = [person("Ana", opening)];
            let alone = ROOM.map(|seat| question_for(seat, Purpose::Vote { trigger: Trigger::Lull }, &lines));
            let voter = |request: &Request| {
                let asker = request.companion.clone().expect("somebody asks");
                (
                    Voter { id: asker.id, name: asker.name },
                    request.extensions.get::<QuestionContext>().cloned().expect("it has one"),
                )
            };
            let of: Vec<_> = alone.iter().map(voter).collect();
            let voters: Vec<_> = of.iter().map(|(voter, _)| voter.clone()).collect();
            let mut together = request(Purpose::Votes { of }, "");
            together.companion = None;

            let answer = model.ask(&together, None).await.expect("it always answers").text().into_owned();

            let parts = vote::together::parts(&answer, &voters, Words::ENGLISH);
            let mut votes = voters.iter().map(|voter| vote::read(&parts[&voter.id], Words::ENGLISH));
            for seat in ROOM {
                assert_eq!(votes.next(), Some(vote_of(&model, seat, Trigger::Lull, &lines).await), "{seat:?}: {answer}");
            }
        }
    }
}
