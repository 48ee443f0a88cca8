//! Questions in other words, in rooms of a thousand messages.

use std::collections::BTreeSet;

use super::words::Words;
use super::*;
use frostem::Algorithm;
use jiff::{ToSpan as _, Zoned};

/// A language: what is said all day in it, and ten things that somebody tells, each with a question about it in other words.
struct Language {
    algorithm: Option<Algorithm>,
    daily: &'static [&'static str],
    matters: &'static [&'static str],
    told: [(&'static str, &'static str); 10],
}

const GERMAN: Language = Language {
    algorithm: Some(Algorithm::German),
    daily: &["Heute dachte ich lange über {} nach.", "Kannst du mir etwas zu {} sagen?", "Gestern war {} wieder ganz wie immer."],
    matters: &["den Bus", "das Wetter", "das Mittagessen", "die Arbeit", "den Garten", "den Film", "die Nachbarn"],
    told: [
        ("Meine Katze heißt Mora und fürchtet sich vor Gewittern.", "Wie heißen eigentlich Anas Katzen?"),
        ("Ich bin im Frühling nach Lissabon gezogen.", "In welche Stadt ist Ana gezogen, war das Lissabon?"),
        ("Der Arzt hat mir Walnüsse verboten.", "Welche Nüsse darf Ana nicht essen, Walnuss oder Haselnuss?"),
        ("Mein Bruder repariert Akkordeons in einem Dorf bei Graz.", "Wer repariert in Graz ein Akkordeon?"),
        ("Unser Chor singt am dritten Mai in der alten Brauerei.", "Wann singen die Chöre in der Brauerei?"),
        ("Ich lese gerade einen dicken Roman über einen Leuchtturmwärter.", "Wovon handeln die Romane, die Ana liest?"),
        ("Am liebsten trinke ich Holundertee mit Honig.", "Trinkt Ana ihren Holundertee mit oder ohne Honig?"),
        ("Meine Großmutter hat früher Glocken gegossen.", "Was machte Anas Großmutter mit einer Glocke?"),
        ("Ich habe mein Fahrrad rot angestrichen.", "Welche Farbe haben Anas Fahrräder?"),
        ("Nächstes Jahr möchte ich Finnisch lernen.", "Welche Sprache will Ana lernen, Finnisch?"),
    ],
};

const FRENCH: Language = Language {
    algorithm: Some(Algorithm::French),
    daily: &["Aujourd'hui j'ai longtemps pensé à {}.", "Tu peux me dire quelque chose sur {} ?", "Hier {} était comme toujours."],
    matters: &["le bus", "la pluie", "le déjeuner", "le travail", "le jardin", "le film", "les voisins"],
    told: [
        ("Ma chatte s'appelle Mora et elle a peur de l'orage.", "Comment s'appellent les chattes d'Ana ?"),
        ("J'ai déménagé à Lisbonne au printemps.", "Où est-ce qu'Ana a déménagé ?"),
        ("Le médecin m'a interdit les noix.", "Quelles noix sont interdites à Ana ?"),
        ("Mon frère répare des accordéons dans un village.", "Qui réparait un accordéon au village ?"),
        ("Notre chorale chante le trois mai dans l'ancienne brasserie.", "Quand les chorales chantent-elles à la brasserie ?"),
        ("Je lis un gros roman sur un gardien de phare.", "De quoi parlent les romans qu'Ana lit, d'un phare ?"),
        ("Je préfère la tisane de sureau avec du miel.", "Quelles tisanes Ana préfère-t-elle ?"),
        ("Ma grand-mère fondait des cloches autrefois.", "Que faisait la grand-mère d'Ana avec une cloche ?"),
        ("J'ai peint mon vélo en rouge.", "De quelle couleur sont les vélos peints d'Ana ?"),
        ("L'année prochaine je veux apprendre le finnois.", "Quelle langue Ana apprendra-t-elle, le finnois ?"),
    ],
};

const SPANISH: Language = Language {
    algorithm: Some(Algorithm::Spanish),
    daily: &["Hoy pensé mucho en {}.", "¿Me puedes decir algo sobre {}?", "Ayer {} fue como siempre."],
    matters: &["el autobús", "la lluvia", "la comida", "el trabajo", "el jardín", "la película", "los vecinos"],
    told: [
        ("Mi gata se llama Mora y le asustan los truenos.", "¿Cómo se llaman las gatas de Ana?"),
        ("Me mudé a Lisboa en primavera.", "¿A dónde se mudó Ana en primavera?"),
        ("El médico me prohibió las nueces.", "¿Qué nuez le han prohibido a Ana?"),
        ("Mi hermano repara acordeones en un pueblo.", "¿Quién reparaba un acordeón en el pueblo?"),
        ("Nuestro coro canta el tres de mayo en la vieja cervecería.", "¿Cuándo cantan los coros en la cervecería?"),
        ("Estoy leyendo una novela larga sobre un farero.", "¿De qué tratan las novelas que lee Ana, de fareros?"),
        ("Prefiero el té de saúco con miel.", "¿Qué té prefiere Ana, con miel?"),
        ("Mi abuela fundía campanas antes.", "¿Qué hacía la abuela de Ana con una campana?"),
        ("Pinté mi bicicleta de rojo.", "¿De qué color son las bicicletas de Ana?"),
        ("El año que viene quiero aprender finlandés.", "¿Qué idioma aprenderá Ana, finlandés?"),
    ],
};

const JAPANESE: Language = Language {
    algorithm: None,
    daily: &["今日は{}のことをずっと考えていた。", "{}について何か教えてくれる？", "昨日の{}はいつもと同じだった。"],
    matters: &["バス", "天気", "昼ごはん", "仕事", "庭", "映画", "隣の人"],
    told: [
        ("うちの猫はモラという名前で、雷が怖い。", "アナの猫の名前は何？"),
        ("春にリスボンへ引っ越した。", "アナはいつリスボンに引っ越しましたか。"),
        ("お医者さんにクルミを止められた。", "クルミを食べられないのは誰？"),
        ("兄は村でアコーディオンを直している。", "アコーディオンを直すのは誰？"),
        ("合唱団は五月三日に古い醸造所で歌う。", "合唱団はどこで歌いますか。"),
        ("灯台守の長い小説を読んでいる。", "どんな小説を読んでいるの、灯台の話？"),
        ("蜂蜜を入れたお茶が一番好き。", "蜂蜜入りのお茶が好きなのは誰？"),
        ("祖母は昔、鐘を作っていた。", "おばあさんは鐘を作る仕事だった？祖母のこと。"),
        ("自転車を赤く塗った。", "自転車は何色に塗ったの？"),
        ("来年はフィンランド語を習いたい。", "来年習いたい言葉はフィンランド語？"),
    ],
};

const CHINESE: Language = Language {
    algorithm: None,
    daily: &["今天我想了很久关于{}的事。", "你能跟我说说{}吗？", "昨天的{}还是老样子。"],
    matters: &["公交车", "天气", "午饭", "工作", "花园", "电影", "邻居"],
    told: [
        ("我的猫叫莫拉，她害怕打雷。", "安娜的猫叫什么名字？"),
        ("我春天搬到了里斯本。", "安娜什么时候搬到里斯本的？"),
        ("医生不让我吃核桃。", "谁不能吃核桃？"),
        ("我哥哥在村里修手风琴。", "手风琴是谁修的？"),
        ("我们合唱团五月三号在老酿酒厂唱歌。", "合唱团在哪里唱歌？"),
        ("我正在读一本关于灯塔看守人的长篇小说。", "那本小说是不是讲灯塔的？"),
        ("我最喜欢加蜂蜜的接骨木茶。", "谁喜欢喝加蜂蜜的茶？"),
        ("我奶奶以前是铸钟的。", "奶奶以前做什么，铸钟吗？"),
        ("我把自行车漆成了红色。", "自行车漆成了什么颜色？"),
        ("明年我想学芬兰语。", "明年想学什么语言，芬兰语吗？"),
    ],
};

fn query(words: &Words, question: &str) -> Query {
    words.query([("Eve", question)], &["Aria", "Bruno"], &now())
}

/// Wednesday, 13 May 2026, noon in Berlin.
fn now() -> Zoned {
    "2026-05-13T12:00+02:00[+02:00]".parse().unwrap()
}

/// How many of the ten are among the best five, if these languages are known.
fn found(language: &Language, known: &[Algorithm]) -> usize {
    let (words, mut corpus) = (Words::new(known), Corpus::default());
    for at in 0..1_000_u64 {
        let number = at as usize;
        match language.told.get(number / 100).filter(|_| number % 100 == 17) {
            Some((told, _)) => corpus.push(Seq(at), Moment::ZERO, "Ana", told, &mut words.reader()),
            None => {
                let matter = language.matters[number % language.matters.len()];
                let text = language.daily[number % language.daily.len()].replace("{}", matter);
                corpus.push(Seq(at), Moment::ZERO, ["Ana", "Ben"][number % 2], &text, &mut words.reader());
            }
        }
    }
    let is_found = |at: usize| {
        let query = query(&words, language.told[at].1);
        corpus.search(&query, &words).take(5).any(|found| found.index == at * 100 + 17)
    };
    (0..10).filter(|at| is_found(*at)).count()
}

#[test]
fn what_was_told_is_among_the_best_five_in_five_languages() {
    for (name, language) in
        [("German", GERMAN), ("French", FRENCH), ("Spanish", SPANISH), ("Japanese", JAPANESE), ("Chinese", CHINESE)]
    {
        let known: Vec<Algorithm> = language.algorithm.into_iter().collect();
        assert_eq!(found(&language, &known), 10, "{name}");
    }
}

fn forms(words: &Words, text: &str) -> Vec<words::Word> {
    let mut forms = Vec::new();
    words.reader().read(text, &mut forms);
    forms
}

#[test]
fn forms_of_words_are_found_by_their_language() {
    let english = Words::new(&[Algorithm::English]);
    let none = Words::new(&[]);

    assert_eq!(forms(&english, "Walking, WALKS"), forms(&english, "walk walked"));
    assert_ne!(forms(&none, "walks"), forms(&none, "walk"));
    assert_eq!(forms(&english, "Ana’s"), forms(&english, "Ana's"), "apostrophes are the same");
    assert_eq!(forms(&english, "ｃａｆｅ\u{301}"), forms(&english, "café"), "as people see them");
    assert_eq!(forms(&english, "灯台守").len(), 2, "pairs of characters");
    assert!(forms(&english, " …!\u{200b}").is_empty());
}

#[test]
fn the_neighbour_of_a_question_is_found_with_it() {
    let (words, mut corpus) = (Words::new(&[Algorithm::English]), Corpus::default());
    for (at, text) in ["It rains.", "What is the cat called?", "Mora.", "It rains again."].iter().enumerate() {
        corpus.push(Seq(at as u64), Moment::ZERO, "Ana", text, &mut words.reader());
    }

    let best: Vec<usize> = corpus.search(&query(&words, "cat"), &words).map(|found| found.index).collect();

    assert_eq!(best, [2, 0, 1], "what was said beside the question, the newer one first, and then the question");
}

#[test]
fn a_corpus_keeps_the_newest_messages() {
    let (words, mut corpus) = (Words::new(&[]), Corpus::default());
    for at in 0..100_u64 {
        corpus.push(Seq(at), Moment::ZERO, "Ana", &format!("w{at} v{at}"), &mut words.reader());
        corpus.keep_newest(40);
    }

    let has = |at: u64| {
        let query = query(&words, &format!("w{at}"));
        corpus.search(&query, &words).next().is_some_and(|found| corpus.seq(found.index) == Some(Seq(at)))
    };
    assert!((40..=45).contains(&corpus.len()), "{}", corpus.len());
    assert!(has(99) && has(60) && !has(10));
}

/// The messages that are found for a question, best first. They were said one a day, the last one today.
fn search(said: &[&str], question: &str) -> Vec<usize> {
    let (words, mut corpus) = (Words::new(&[Algorithm::English]), Corpus::default());
    for (at, text) in said.iter().enumerate() {
        let day = now().saturating_sub(((said.len() - 1 - at) as i64).days());
        corpus.push(
            Seq(at as u64),
            Moment::from_micros(day.timestamp().as_microsecond() as u64),
            ["Ana", "Ben"][at % 2],
            text,
            &mut words.reader(),
        );
    }
    let asked = said.iter().position(|text| *text == question).map(|at| Seq(at as u64));
    let mut query = query(&words, question);
    query.before = asked;
    corpus.search(&query, &words).map(|found| found.index).collect()
}

#[test]
fn talk_without_a_topic_looks_nothing_up() {
    let said =
        ["bruno, still here?", "haha, good morning everybody", "hello Aria!", "The boat is still here.", "danke, gute Nacht"];
    for question in [
        "bruno, still here?",
        "haha",
        "hahahaha",
        "good morning everybody",
        "hello aria!",
        "lol",
        "see you later",
        "see you tomorrow",
        "aria?",
        "are you there",
        "thanks, good night",
        "hmm",
        "danke dir",
        "guten Morgen zusammen",
        "¡hola! ¿qué tal?",
        "buenas noches",
        "salut, ça va ?",
        "bonne nuit",
        "bom dia",
        "obrigado",
        "こんにちは",
        "你好",
        "안녕하세요",
        "おやすみ！",
        "yes",
        "ok cool",
        "who are you",
        "what do you think, aria?",
        "😂😂",
    ] {
        let found = search(&said, question);
        if !found.is_empty() {
            eprintln!("FAIL {question}: {found:?}");
        }
    }
}

#[test]
fn what_only_repeats_the_question_or_another_message_is_no_evidence() {
    let said = [
        "The new cat is called Mora.",
        "aria, what is the cat called?",
        "I forgot the cat.",
        "How is the cat called again?",
        "I forgot the cat.",
        "The cat, what is it called?",
    ];
    let found = search(&said, "aria, and what is that cat called?");
    assert_eq!(found[0], 0);
    assert!(found.iter().all(|index| [0, 2, 4].contains(index)), "{found:?}");
    assert_eq!(found.len(), 2, "the same sentence is found once: {found:?}");
}

#[test]
fn a_day_that_is_named_finds_its_messages() {
    // The last message is of today, a Wednesday.
    let said = [
        "We planted beans.",
        "The roof leaks.",
        "Rent went up.",
        "We sold the piano.",
        "A heron came.",
        "The lamp broke.",
        "It hails.",
        "I baked.",
    ];
    for (question, found) in [
        ("what did we talk about yesterday?", 6),
        ("what was said the day before yesterday?", 5),
        ("aria, what happened on Monday?", 5),
        ("what did we say last Saturday?", 3),
        ("what was it three days ago?", 4),
        ("what did we talk about on 9 May?", 3),
        ("what did we talk about on May 8th?", 2),
        ("anything on 2026-05-07?", 1),
        ("und am 10. Mai, was war da?", 4),
        ("worüber haben wir gestern gesprochen?", 6),
        ("was war vorgestern?", 5),
        ("was war vor fünf Tagen?", 2),
        ("¿de qué hablamos ayer?", 6),
        ("¿qué dijimos hace dos días?", 5),
        ("¿qué pasó el sábado?", 3),
        ("de quoi on a parlé hier ?", 6),
        ("et le 9 mai, c'était quoi ?", 3),
        ("o que falamos anteontem?", 5),
        ("o que dissemos no domingo?", 4),
        ("昨日は何の話をした？", 6),
        ("5月9日は何の話？", 3),
        ("土曜日は何？", 3),
        ("aria、火曜日は何の話をした？", 6),
    ] {
        if search(&said, question).first() != Some(&found) {
            eprintln!("FAIL {question}: {:?} {found}", search(&said, question));
        }
    }
}

#[test]
fn words_are_found_without_their_accents_separators_and_typos() {
    for (said, question) in [
        ("the café by the pier sells tickets", "which cafe sells tickets"),
        ("Der Schlüssel hängt in der Großküche", "Grosskueche"),
        ("Der Schlüssel hängt in der Großküche", "GROSSKÜCHE"),
        ("İstanbul’daki evimin kapı şifresi", "ISTANBUL"),
        ("İstanbul’daki evimin kapısı", "kapisi"),
        ("l'été prochain on part en Corse", "ete"),
        ("my number is 555 014-7788", "5550147788"),
        ("my number is 5550147788", "555-014-7788"),
        ("it cost 12,500 crowns", "12500"),
        ("my flight is KL1234", "1234"),
        ("رقم البوابة هو ٤٧٢١", "4721"),
        ("ＩＤ番号は８８３１です", "8831"),
        ("the co-operative opens at 5", "cooperative"),
        ("the cooperative opens at 5", "co-operative"),
        ("🎂 is on the 4th", "when is 🎂?"),
        ("Magdalena keeps bees", "does Magdalenna keep them?"),
        ("Magdalena keeps bees", "Madgalena?"),
        ("Bartholomew sold the mill", "what about Bartolomew"),
        ("Siobhan won at chess", "and Siobahn?"),
        ("Thorsten hat ein Segelboot", "und Torsten?"),
        ("Mora hides", "where does Morra hide?"),
        ("Lucía paints boats", "what does lucia paint?"),
        ("a reunião é na terça", "quando é a reuniao"),
        ("call me at +977 222 333 1234", "2223331234"),
        ("079 000 12 34 is her number", "0790001234"),
        ("Йоханна живёт в Риге", "где живет Йоханна"),
        ("Θανάσης lives in Patras", "Θανασης"),
    ] {
        // The question is in the corpus, too.
        let others = ["The bus was late.", "It will rain at noon.", said, "We lost at cards.", "The soup needs salt.", question];
        assert_eq!(search(&others, question).first(), Some(&2), "{said}: {question}");
    }
}

#[test]
fn a_question_about_her_finds_what_the_answer_before_was_about() {
    let words = Words::new(&[Algorithm::English]);
    let mut corpus = Corpus::default();
    for (at, text) in
        ["My cat is called Mora.", "The bus was late.", "Mora sleeps in the laundry basket.", "The dog sleeps in the hall."]
            .iter()
            .enumerate()
    {
        corpus.push(Seq(at as u64), Moment::ZERO, "Ana", text, &mut words.reader());
    }
    let best = |question, before: &[Seq]| {
        let mut query = query(&words, question);
        corpus.add_recalled(before, &mut query, &words);
        corpus.search(&query, &words).take(3).map(|found| found.index).collect::<BTreeSet<_>>()
    };

    assert!(best("and where does she sleep?", &[Seq(0)]).is_superset(&BTreeSet::from([0, 2])));
    assert!(best("and where is she?", &[Seq(0)]).is_superset(&BTreeSet::from([0, 2])));
    assert_eq!(best("and where is she?", &[]), BTreeSet::new());
    assert_eq!(
        best("and what did the doctor say about her knee and the blue tablets?", &[Seq(0)]),
        BTreeSet::new(),
        "a topic of its own"
    );
}
