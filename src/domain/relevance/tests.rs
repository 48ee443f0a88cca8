use super::*;

/// The talk of a room as one companion remembers it, Aria.
#[derive(Default)]
struct Talk(Relevance);

impl Talk {
    fn says<'a>(&mut self, from: &'a str, text: &'a str) -> Features {
        let named = if text.to_lowercase().contains("aria") { Named::Me } else { Named::Unknown };
        let heard = Heard { from, is_person: true, text, named };
        self.0.record_message(&heard);
        self.0.features(&heard)
    }

    fn aria_says(&mut self, text: &str) {
        self.0.speak("Aria", text);
    }
}

#[test]
fn what_is_remembered_fits_into_512_bytes() {
    assert!(size_of::<Relevance>() <= 512, "{}", size_of::<Relevance>());
}

#[test]
fn who_is_named_or_in_a_dialogue_more_likely_answers() {
    let mut talk = Talk::default();
    talk.says("ana", "hello everybody");
    talk.says("ben", "I use the other kernel now");
    talk.aria_says("ben: which one do you mean?");
    let answer = talk.says("ben", "the one with the patches");
    let to_other = talk.says("ana", "ben: how was lunch?");
    let named = talk.says("ana", "aria, what about you?");

    assert!(named.logit() > answer.logit() && answer.logit() > to_other.logit());
    assert!(answer.get(Feature::JustBefore) > 0.0 && answer.get(Feature::AddressedLast) > 0.0);
    assert!(to_other.get(Feature::OtherNamed) > 0.0);
}

#[test]
fn the_longer_ago_the_companion_spoke_the_less_likely_it_answers() {
    let mut talk = Talk::default();
    talk.says("ana", "hello");
    talk.aria_says("hello ana");
    let soon = talk.says("ben", "does anybody know the way?").logit();
    for at in 0..60 {
        talk.says(["ana", "ben", "cleo"][at % 3], "and then we walked on for a while");
    }

    assert!(talk.says("ben", "does anybody know the way?").logit() < soon);
}

#[test]
fn counting_on_changes_nothing() {
    let after = |rounds: u32| {
        let mut talk = Talk::default();
        for _ in 0..rounds {
            for from in ["ana", "ben", "ana", "cleo"] {
                talk.says(from, "one thing and another");
            }
            talk.aria_says("ana: yes");
        }
        talk.says("ana", "so?")
    };

    assert_eq!(after(100), after(u32::from(u16::MAX) / 4));
}

#[test]
fn it_is_the_same_after_it_was_stored() {
    let mut talk = Talk::default();
    talk.says("ana", "hello");
    talk.aria_says("hello, how are things?");
    talk.says("ben", "fine, things are fine");

    let stored: Relevance = serde_json::from_str(&serde_json::to_string(&talk.0).unwrap()).unwrap();

    assert_eq!(stored, talk.0);
}

#[test]
fn the_memory_of_an_earlier_version_is_read() {
    let earlier = r#"{"me":7,"count":3,"others":[{"who":9,"heard":2,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":true},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false},{"who":0,"heard":0,"named_me":0,"named_by_me":0,"named_other":0,"named_by_other":0,"is_person":false}],"recent":[9,7,9,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"reactions":1,"own_words":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0],"last_own":2,"newest":9,"before":7,"run":1,"turns":1}"#;

    let memory: Relevance = serde_json::from_str(earlier).unwrap();

    assert_eq!((memory.since_own(), memory.has_one_person()), (Some(1), true));
    let estimate: Estimate =
        serde_json::from_str(r#"{"logit":-4.0,"threshold":-1.83,"features":[["turns_since",2.0]]}"#).unwrap();
    assert_eq!(estimate.parts(), None);
}

#[test]
fn any_text_and_any_name_can_be_heard() {
    for text in ["", " ", "@", ":", "🦀", "é: ça va?", "a:", "\u{0}", &"x".repeat(10_000)] {
        let mut talk = Talk::default();
        talk.says(text, text);
        talk.aria_says(text);
        assert!(talk.says(text, text).logit().is_finite(), "{text:?}");
    }
}

#[test]
fn short_reactions_say_little() {
    for text in ["haha", "6", "ok thanks", "lol yes"] {
        assert!(is_reaction(text), "{text}");
    }
    for text in ["why not then", "ok, and how does one install it?"] {
        assert!(!is_reaction(text), "{text}");
    }
}
