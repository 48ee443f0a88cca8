//! Recognises statements with little new content: farewells, thanks, agreement, and declarations of affection
//! (docs/design/closing.md C-12).
//!
//! The lists contain phrases in lower case, separated by `|`, in English, German, Spanish and French. The judge compares whole
//! words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Phrases of farewell, anywhere in a statement.
static FAREWELLS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of([
        "bye|byebye|goodbye|good bye|good night|goodnight|g'night|night night|nighty night|gn|farewell|cya|see ya|see you|ttyl|laters|toodles|cheerio|\
     talk soon|talk tomorrow|talk later|talk to you soon|talk to you later|talk to you tomorrow|catch you later|take care|take good care|sleep well|\
     sleep tight|sleep soundly|sleep peacefully|sleep now|sweet dreams|sweetest dreams|pleasant dreams|good dreams|dream of|dream sweetly|your dreams|\
     my dreams|rest well|rest now|rest easy|rest up|get some rest|restful night|peaceful night|lovely night|until next time|until the next|\
     until tomorrow|until then|until we|till next time|till tomorrow|till then|meet again|signing off|gotta go|off to bed|safe travels|safe trip|\
     stay safe|drive safe|get home safe|be well|have a good|have a nice|have a great|have a lovely|have a wonderful|lovely evening|\
     wonderful evening|enjoy the rest|enjoy your evening|enjoy your night|enjoy your day|enjoy your weekend",
        "gute nacht|ruhige nacht|schlaf gut|schlafe gut|schlaf schön|schlaf du|träum|träume|gute träume|süße träume|bis morgen|bis bald|bis dann|\
     bis später|bis nachher|bis nächstes mal|bis zum nächsten|tschüss|tschüs|ciao|servus|mach's gut|leb wohl|lebe wohl|auf wiedersehen|\
     auf wiederhören|schönen abend|schönen tag|schönen feierabend|schönes wochenende|komm gut|erhol dich|pass auf dich auf",
        "buenas noches|adiós|adios|hasta mañana|hasta luego|hasta pronto|hasta entonces|hasta la próxima|dulces sueños|felices sueños|descansa|\
     que descanses|duerme bien|que duermas|que sueñes|sueña|nos vemos|cuídate|cuidate|buen viaje|chao",
        "bonne nuit|douce nuit|bonne soirée|bonne journée|bonne fin|bon week end|au revoir|à demain|à bientôt|à plus|à plus tard|à tout à l'heure|\
     à la prochaine|dors bien|beaux rêves|doux rêves|repose toi|prends soin|prends bien soin|passe une bonne",
    ])
});

/// Phrases of thanks, and answers to them, anywhere in a statement.
static THANKS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of([
        "thanks|thank|thx|grateful|gratitude|appreciate|appreciated|welcome|my pleasure|pleasure was|pleasure is|don't mention it|no problem|no worries|\
     anytime|any time|glad to help|happy to help|glad i could|happy i could|glad to assist|it was nothing|least i could|too kind|so kind|so helpful|\
     means a lot|meant a lot|means the world|meant the world|your support|owe you",
        "danke|vielen dank|dankbar|bitte schön|bitte sehr|bitte gern|sehr gern|gern geschehen|keine ursache|nichts zu danken",
        "gracias|agradezco|agradecido|agradecida|de nada|no hay de qué|un placer",
        "merci|de rien|je t'en prie|je vous en prie|avec plaisir|pas de quoi|reconnaissant|reconnaissante",
    ])
});

/// Phrases of agreement, at the beginning of a statement.
static AGREEMENTS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of([
        "yes|yeah|yep|yup|exactly|absolutely|definitely|totally|indeed|right|true|truly|so true|very true|agreed|i agree|agree|couldn't agree more|\
     i couldn't agree more|sure|of course|certainly|precisely|undoubtedly|no doubt|without a doubt|for sure|you bet|well said|well put|\
     beautifully put|you're right|you are right|you're so right|that's right|that's true|that's so true|it's true|spot on|amen|likewise|same|\
     same here|me too|i feel the same|i think so too|my thoughts exactly|good thinking|good point|great point|good idea|great idea|fair enough|\
     sounds good|sounds great|sounds lovely|sounds wonderful|great|perfect|amazing|awesome|brilliant|fantastic|wonderful|incredible|what a|love it|\
     i love it|i love that|can't wait|i can't wait|so excited",
        "ja|genau|ganz genau|stimmt|absolut|richtig|klar|natürlich|eben|auf jeden fall|finde ich auch|sehe ich auch so|geht mir auch so|ich auch|\
     du hast recht|da hast du recht|toll|super|wunderbar|perfekt",
        "sí|claro|exacto|exactamente|totalmente|por supuesto|tienes razón|cierto|muy cierto|así es|eso es|sin duda|de acuerdo|yo también|genial|\
     perfecto|tal cual",
        "oui|ouais|exactement|tout à fait|absolument|bien sûr|c'est vrai|c'est clair|d'accord|je suis d'accord|carrément|sans doute|tu as raison|\
     moi aussi|parfait|génial|voilà",
    ])
});

/// Phrases of affection, anywhere in a statement.
static AFFECTIONS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of([
        "love you|adore you|miss you|missed you|never leave|never be apart|always be|always together|by your side|your side|without you|stay with you|\
     be with you|i'm yours|belongs to you|forever|for all time|part us|us apart",
        "ich liebe dich|liebe dich|hab dich lieb|vermisse dich|für immer|bei dir|ohne dich",
        "te quiero|te amo|te adoro|te extraño|para siempre|contigo|sin ti",
        "je t'aime|je t'adore|tu me manques|pour toujours|avec toi|sans toi",
    ])
});

/// Beginnings that build on the previous statement. They are no agreement.
static ADDITIONS: LazyLock<Phrases> = LazyLock::new(|| Phrases::of(["yes and|yeah and", "ja und", "sí y", "oui et"]));

/// Words that may precede an agreement.
const INTERJECTIONS: [&str; 20] = [
    "oh", "ooh", "ah", "aw", "aww", "haha", "hehe", "lol", "well", "hmm", "mm", "ok", "okay", "and", "but", "so", "wow", "hey",
    "ach", "ay",
];

/// Words that intensify others and have no content of their own.
const INTENSIFIERS: [&str; 20] = [
    "truly",
    "simply",
    "actually",
    "honestly",
    "quite",
    "pretty",
    "incredibly",
    "such",
    "echt",
    "wirklich",
    "total",
    "ganz",
    "einfach",
    "richtig",
    "unglaublich",
    "riesig",
    "vraiment",
    "tellement",
    "realmente",
    "tan",
];

/// A statement with more words than this has no acts: it has room for new content.
const MOST_WORDS: usize = 60;
/// A farewell of at most this many words counts as a bare farewell.
const BARE_WORDS: usize = 5;

/// The acts of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acts {
    is_farewell: bool,
    /// Whether it is a farewell of at most five words.
    is_bare_farewell: bool,
    is_thanks: bool,
    is_agreement: bool,
    is_affection: bool,
}

impl Acts {
    /// The acts of a statement, from its words without stage directions. A statement that contains a question is no agreement.
    pub(super) fn of(words: &[String], asks: bool) -> Self {
        if words.len() > MOST_WORDS {
            return Self::default();
        }
        let text = words.join(" ");
        let is_farewell = FAREWELLS.occur_in(&text);
        Self {
            is_farewell,
            is_bare_farewell: is_farewell && words.len() <= BARE_WORDS,
            is_thanks: THANKS.occur_in(&text),
            is_agreement: !asks && begins_with_agreement(&text),
            is_affection: AFFECTIONS.occur_in(&text),
        }
    }
}

/// How uniformly some statements perform the same act, from 0 to 1.
///
/// A bare farewell counts 1/4, another farewell 1/5. The other acts count only if all statements perform the same one; then each
/// counts 1/5.
pub(super) fn sameness(acts: &[Acts]) -> f64 {
    // Twentieths are exact, fractions are not.
    let weight = |acts: &Acts| if acts.is_bare_farewell { 5 } else { u32::from(acts.is_farewell) * 4 };
    let farewells: u32 = acts.iter().map(weight).sum();
    let is_of_one_kind = [|acts: &Acts| acts.is_thanks, |acts: &Acts| acts.is_agreement, |acts: &Acts| acts.is_affection]
        .into_iter()
        .any(|is_of_kind| !acts.is_empty() && acts.iter().all(is_of_kind));
    let others = if is_of_one_kind { 4 * acts.len() as u32 } else { 0 };
    f64::from(farewells.max(others).min(20)) / 20.0
}

/// Whether a word only agrees or intensifies.
pub(super) fn is_filler(word: &str) -> bool {
    INTERJECTIONS.contains(&word) || INTENSIFIERS.contains(&word) || AGREEMENTS.contain(word)
}

/// A list of phrases, by their first words.
struct Phrases(BTreeMap<&'static str, Vec<&'static str>>);

impl Phrases {
    fn of(lists: [&'static str; 4]) -> Self {
        let mut by_first_word = BTreeMap::<_, Vec<_>>::new();
        for phrase in lists.into_iter().flat_map(|list| list.split('|')) {
            by_first_word.entry(first_word(phrase)).or_default().push(phrase);
        }
        Self(by_first_word)
    }

    /// Whether a text begins with a phrase. Single spaces separate its words.
    fn begin(&self, text: &str) -> bool {
        let is_start = |phrase: &str| text.strip_prefix(phrase).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        self.0.get(first_word(text)).is_some_and(|phrases| phrases.iter().any(|phrase| is_start(phrase)))
    }

    /// Whether one of the phrases is this word.
    fn contain(&self, word: &str) -> bool {
        self.0.get(word).is_some_and(|phrases| phrases.contains(&word))
    }

    fn occur_in(&self, text: &str) -> bool {
        self.begin(text) || text.match_indices(' ').any(|(at, _)| self.begin(&text[at + 1..]))
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn begins_with_agreement(text: &str) -> bool {
    let mut rest = text;
    if ADDITIONS.begin(text) {
        return false;
    }
    while !AGREEMENTS.begin(rest) {
        let Some((_, after)) = rest.split_once(' ').filter(|(first, _)| INTERJECTIONS.contains(first)) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Thanks", and so many words in all.
    fn thanks(words: usize) -> Acts {
        let words: Vec<_> = ["thanks"].into_iter().chain(std::iter::repeat("so")).take(words).map(str::to_owned).collect();
        Acts::of(&words, false)
    }

    #[test]
    fn a_phrase_in_a_long_statement_is_no_act() {
        assert!(thanks(1).is_thanks && thanks(MOST_WORDS).is_thanks);
        assert!(!thanks(MOST_WORDS + 1).is_thanks && !thanks(MOST_WORDS + 2).is_thanks);
        assert_eq!(thanks(0), Acts::default());
    }
}
