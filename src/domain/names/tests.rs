use proptest::prelude::*;

use super::*;

#[test]
fn a_name_is_found_at_word_boundaries() {
    let names = one("aria", &["Ari", "Aria Vale"]);

    for (text, addressed) in [
        ("Hey Aria, what do you think?", true),
        ("ARI!", true),
        ("ari's", true),
        ("ari’s", true),
        ("@aria", true),
        ("(aria)", true),
        ("**aria**", true),
        ("x-aria-y", true),
        ("aria", true),
        ("malaria is spreading", false),
        ("familiar", false),
        ("arias", false),
        ("aria_bot", false),
        ("_aria", false),
        ("aria2", false),
        ("ária", false),
        ("aria\u{301}", false),
        ("éaria", false),
        ("", false),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
    }
}

#[test]
fn an_id_is_a_name() {
    let names = Names::new([("zed".into(), [])]).unwrap();

    assert_eq!(names.find("zed?"), ["zed".into()]);
}

#[test]
fn no_name_hides_another() {
    let names = Names::new([
        ("a".into(), vec!["Ana Maria"]),
        ("b".into(), vec!["Maria"]),
        ("c".into(), vec!["Ana"]),
        ("d".into(), vec!["Maria Ana Lopez"]),
    ])
    .unwrap();

    assert_eq!(ids(&names, "ana maria"), ["a", "b", "c"]);
    assert_eq!(ids(&names, "maria ana maria ana lopez"), ["a", "b", "c", "d"]);
    assert_eq!(ids(&names, "maria, maria"), ["b"]);
}

#[test]
fn words_of_a_name_may_be_separated_by_any_white_space() {
    let names = one("x", &["  Mira   Vale "]);

    assert!(!names.find("MIRA VALE").is_empty());
    assert!(!names.find("mira \t\n  vale?").is_empty());
    assert!(!names.find("é mira\u{a0}vale").is_empty());
    assert!(names.find("miravale").is_empty());
    assert!(names.find("mira, vale").is_empty());
    assert!(names.find("mira valerie").is_empty());
    assert!(names.find("mira").is_empty());
}

#[test]
fn a_decorated_name_is_found_by_its_words() {
    let names = Names::new([
        ("a".into(), vec!["🔥Ember"]),
        ("b".into(), vec!["★ Nova ★", "小蝶🦋"]),
        ("c".into(), vec!["xX_Dark_Xx", "Nova!"]),
        ("d".into(), vec!["❄Ember❄", "✨Iris✨"]),
        ("e".into(), vec!["Iris"]),
    ])
    .unwrap();

    for (text, expected) in [
        ("Ember, what do you think?", &["a"][..]),
        ("🔥ember", &["a"]),
        ("❄Ember❄", &["a", "d"]),
        ("hi NOVA", &["b"]),
        ("问小蝶吧", &["b"]),
        ("dark", &["c"]),
        ("xx_dark_xx?", &["c"]),
        ("iris", &["e"]),
        ("embers in the darkness", &[]),
    ] {
        assert_eq!(ids(&names, text), expected, "{text}");
    }
    assert_eq!(names.owner("ember"), Some(&"a".into()));
}

#[test]
fn scripts_without_spaces_need_no_boundary() {
    let names = one("aria", &["アリア", "小愛", "มาลี", "민지", "ເອ"]);

    for (text, addressed) in [
        ("アリアさん", true),
        ("ねえアリア、どう?", true),
        ("アリアー!", true),
        ("ariaさん、どう?", true),
        ("ねえaria", true),
        ("aria2さん", false),
        ("malariaさん", false),
        ("ariaーー", true),
        ("小愛你好", true),
        ("สวัสดีมาลีค่ะ", true),
        ("สวัสดีaria", true),
        ("ເອຢູ່ໃສ", true),
        ("민지!", true),
        ("김민지", false),
        ("アリ", false),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
    }
}

#[test]
fn case_and_composition_make_no_difference() {
    let names = one("x", &["Zoë", "Straße", "ΣΟΦΟΣ", "Ёжик", "İpek"]);

    for text in ["ZOË", "zoe\u{308}", "STRASSE", "strasse", "σοφος", "σοφοσ", "ёЖИК", "е\u{308}жик", "İPEK"] {
        assert!(!names.find(text).is_empty(), "{text:?}");
    }
    assert!(names.find("zoe").is_empty());
}

#[test]
fn a_name_with_symbols_at_its_edges_is_found_unless_a_word_touches_it() {
    let names = one("droid", &["c3po!", "@x", "C++", "🤖"]);

    for (text, addressed) in [
        ("hey c3po!", true),
        ("c3po!!", true),
        ("c3po! now", true),
        ("c3po", false),
        ("@x hi", true),
        ("(@x)", true),
        ("mail bob@x.com", false),
        ("I love C++.", true),
        ("c++11", false),
        ("hi 🤖🤖", true),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
    }
}

#[test]
fn names_in_code_links_and_quotes_do_not_count() {
    let names = one("id", &["aria"]);

    for (text, addressed) in [
        ("`aria`", false),
        ("``a ` aria``", false),
        ("`x` aria `y`", true),
        ("it's a ` and aria", true),
        ("` aria\n`", true),
        ("`` aria `", true),
        ("```\naria\n```", false),
        ("```rust\naria", false),
        ("```\nx\n``` aria", true),
        ("look ```aria``` there", false),
        ("```a\n``\naria\n````\nx", false),
        ("```a``` and `aria` b", false),
        ("```a\nb``` and [x](aria) b", false),
        ("~~~\naria\n~~~", false),
        ("~~~~\n~~~\naria", false),
        ("~~~\nx\n~~~\naria", true),
        ("~~aria~~", true),
        ("https://aria.example/aria", false),
        ("see HTTPS://x.org/aria now", false),
        ("see https://x.org/b aria", true),
        ("<https://x.org/aria> b", false),
        ("<https://x.org/b>aria", true),
        ("(https://x.org/b)aria", true),
        ("https://x.org/b_(aria)/aria", false),
        ("見てhttps://x.org/aria", false),
        ("://aria", true),
        ("1://aria", true),
        ("www.aria.example", false),
        ("WWW.aria.example", false),
        ("awww.aria", true),
        ("[text](aria)", false),
        ("[text](<aria b> \"aria\")", false),
        ("[text](x(y)aria) b", false),
        ("[aria](https://x.org)", true),
        ("[text](x) aria", true),
        ("[text](aria", true),
        ("](aria)", true),
        ("> aria", false),
        (">aria", false),
        ("  > aria", false),
        ("> b\naria", true),
        ("> b\n> aria\nc", false),
        (">>> b\naria", false),
        (">>>b\naria", true),
        ("b > aria", true),
        ("> ```\n> x\naria", true),
        ("```\n> x\n```\naria", true),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
    }
}

#[test]
fn addresses_of_other_kinds_name_nobody() {
    let names = one("id", &["aria"]);

    for (text, addressed) in [
        ("aria@example.org", false),
        ("write to me+aria@mail.example.org.", false),
        ("@aria", true),
        ("aria.example.com", false),
        ("see aria.dev:8080/x", false),
        ("ok aria.what now?", true),
        ("aria...", true),
        ("/home/aria/x", false),
        ("~/aria", false),
        ("./aria", false),
        ("C:\\Users\\aria", false),
        ("src/aria.rs", false),
        ("open aria.toml, please", false),
        ("aria/mira", true),
        ("/aria", true),
        (":aria:", false),
        ("hi:) :aria::aria:", false),
        ("<:aria:12345>", false),
        ("aria: hello", true),
        ("well:aria: hello", true),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
        assert_eq!(!names.find(&format!("{text} é")).is_empty(), addressed, "{text:?} in a text that is not ASCII");
    }
}

#[test]
fn underscores_of_emphasis_are_edges() {
    let names = one("id", &["aria"]);

    for (text, addressed) in [
        ("_aria_", true),
        ("__aria__, look", true),
        ("_she smiles at aria_", true),
        ("_aria, look_", true),
        ("_aria", false),
        ("aria_", false),
        ("_aria_bot", false),
        ("my_aria_", false),
        ("_aria\n_", false),
    ] {
        assert_eq!(!names.find(text).is_empty(), addressed, "{text:?}");
        assert_eq!(!names.find(&format!("{text} é")).is_empty(), addressed, "{text:?} in a text that is not ASCII");
    }
}

#[test]
fn a_name_that_is_an_everyday_word_counts_where_it_calls_somebody() {
    let names = Names::new([
        ("will".into(), vec!["Will"]),
        ("hop".into(), vec!["Hope", "Espérance"]),
        ("joi".into(), vec!["★ Joy ★"]),
        ("sun".into(), vec!["Sol", "Mai", "Ernst"]),
        ("oto".into(), vec!["Otto", "Will Smith"]),
    ])
    .unwrap();

    for (text, called) in [
        ("I will go to bed", &[][..]),
        ("that will do", &[]),
        ("I hope it rains", &[]),
        ("what a joy to see you!", &[]),
        ("hace sol hoy", &[]),
        ("Es ist mir ernst", &[]),
        ("Hope you are well", &[]),
        ("Hi, hope you are well", &[]),
        ("hey will somebody help", &[]),
        ("J'ai de l'espérance", &[]),
        ("hi, I will", &[]),
        ("will's", &[]),
        ("Will, are you there?", &["will"]),
        ("will: look", &["will"]),
        ("Will! look", &["will"]),
        ("well, that is odd\nWill, look", &["will"]),
        ("> I will\nWill, look", &["will"]),
        ("Will?", &["will"]),
        ("*Will*, look", &["will"]),
        ("_Will_, look", &["will"]),
        ("Will", &[]),
        ("so @will and I", &["will"]),
        ("hey will", &["will"]),
        ("Hey Will are you up", &["will"]),
        ("oh hello will, come in", &["will"]),
        ("Buenos días, Sol!", &["sun"]),
        ("Grüß dich Ernst wie geht's", &["sun"]),
        ("what do you think, Joy?", &["joi"]),
        ("★ Joy ★ is what I mean", &["joi"]),
        ("Qu'en dis-tu, Espérance ?", &["hop"]),
        ("bonjour Espérance tu vas bien", &["hop"]),
        ("I will ask Otto", &["oto"]),
        ("the actor is will smith", &["oto"]),
    ] {
        assert_eq!(ids(&names, text), called, "{text:?}");
    }
    assert_eq!(ids(&names.clone().with(CommonNames::Anywhere), "I will, I hope"), ["hop", "will"]);
    let spoken = |text: &str| names.find_spoken(text);
    assert_eq!(spoken("will are you there"), ["will".into()]);
    assert_eq!(spoken("what do you think hope."), ["hop".into()]);
    assert_eq!(spoken("we hope it rains"), []);
}

#[test]
fn everyday_words_are_known_in_any_case_and_decorated() {
    for word in ["Will", "ROSE", "★ Hope ★", "Ángel", "aimé", "Mai", "Pilar", "Luz", "Mar"] {
        assert!(is_everyday_word(word), "{word}");
    }
    for name in ["Aria", "Mira", "Otto", "Will Smith", "Hopeful", ""] {
        assert!(!is_everyday_word(name), "{name}");
    }
}

#[test]
fn a_name_that_reaches_into_a_zone_is_not_found() {
    let names = one("id", &["mira vale"]);

    assert!(names.find("mira\n> vale").is_empty());
    assert!(!names.find("> mira vale\nmira vale").is_empty());
}

#[test]
fn two_companions_cannot_share_a_name() {
    let shared = Names::new([("aria".into(), vec!["Ari"]), ("mira".into(), vec!["Mimi", " ARI "])]).unwrap_err();

    assert_eq!(shared, SharedName { name: " ARI ".into(), first: "aria".into(), second: "mira".into() });
    assert!(shared.to_string().contains("aria and mira share the name"));
    assert!(Names::new([("aria".into(), vec![]), ("mira".into(), vec!["Aria"])]).is_err());
}

#[test]
fn a_companion_may_repeat_its_own_name() {
    let names = Names::new([("aria".into(), vec!["Aria", "ARIA", "", "  "])]).unwrap();

    assert_eq!(ids(&names, "aria aria"), ["aria"]);
    assert_eq!(names.owner("aRiA"), Some(&"aria".into()));
    assert_eq!(names.owner(""), None);
    assert!(names.find("   ").is_empty());
}

#[test]
fn without_companions_nobody_is_named() {
    let names = Names::new(Vec::<(CompanionId, Vec<&str>)>::new()).unwrap();

    assert!(names.find("aria").is_empty());
}

#[test]
fn long_hostile_texts_are_read_in_linear_time() {
    let names = one("id", &["aria", "hope"]);

    for piece in [
        "`", "` `` ", "_aria", "_aria ", "hi hope ", "hope, ", ":", ":a", "a@", "a.b/", "/", "[a](", "](", "://", "a://", ">",
        "~~~\n", "```\n", "www.", "(", "[(])",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        names.find(&format!("{text} aria"));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "\\PC*", pieces in prop::collection::vec(piece(), 0..30)) {
        let names = one("id", &["aria", "アリア", "a b", "hope"]);

        names.find(&text);
        names.find(&pieces.concat());
    }

    #[test]
    fn an_ascii_text_is_read_like_any_other(words in prop::collection::vec(ascii(), 0..12)) {
        let names = Names::new([("a".into(), vec!["aria", "@x"]), ("ri".into(), vec!["a b", "ar"]), ("z-z".into(), vec!["z", "c++"])]).unwrap();
        let text = words.concat();

        prop_assert_eq!(names.find(&text), names.find(&format!("{text}\né")));
    }

    #[test]
    fn a_name_in_plain_words_is_always_found(before in "[a-z ]{0,40}", after in "[a-z ]{0,40}") {
        let names = one("id", &["aria"]);

        prop_assert_eq!(names.find(&format!("{before} Aria, {after}")).len(), 1);
    }

    #[test]
    fn zones_are_in_order_and_inside_the_text(pieces in prop::collection::vec(piece(), 0..30)) {
        let text = pieces.concat();

        let zones = Zones::of(&text).into_ranges();

        prop_assert!(zones.iter().all(|zone| zone.start < zone.end && text.get(zone.clone()).is_some()));
        prop_assert!(zones.windows(2).all(|two| two[0].end <= two[1].start));
    }
}

fn ascii() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["aria", "a", "b", "ar", "ri", "z", "-", "@", "x", "c++", " ", " ", "  ", "_", "1", "Z-Z"])
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "`", "``", "```", "~~~", "\n", ">", ">>> ", " ", "aria", "://", "https://", "www.", "[", "](", ")", "(", "<", "é", "ア",
        "リア", "\u{301}", "_", ":", "@", "/", ".com", "hope", "hi ", ",",
    ])
}

fn one(id: &str, names: &[&'static str]) -> Names {
    Names::new([(id.into(), names.iter().copied())]).unwrap()
}

fn ids(names: &Names, text: &str) -> Vec<String> {
    names.find(text).iter().map(ToString::to_string).collect()
}
