//! Links the page's modules into one script, and its style sheets into one, so that loading the page needs few requests. Modules that are imported
//! by `import('./name.js')` are in a second script, which is loaded when one of them is first needed.
//!
//! The modules use only a subset of the syntax, which a test checks: each import and each export begins a line, imports are from `./name.js` or
//! `./name.json`, an exported value never changes later, and no two modules import each other.

/// The beginnings of a page's links to its style sheets, and to its first module.
const STYLE_LINK: &str = "<link rel=\"stylesheet\" href=\"/page/";
const MODULE: &str = "<script type=\"module\" src=\"/page/";
/// The beginning of a dynamic import.
const LATER: &str = "import('./";

/// The name of a style sheet or script that a line of a page links to.
pub(super) fn linked(line: &str) -> Option<(Kind, &str)> {
    let of = |prefix: &str, kind: Kind| Some((kind, line.trim_start().strip_prefix(prefix)?.split('"').next()?));
    of(STYLE_LINK, Kind::Style).or_else(|| of(MODULE, Kind::Module))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Style,
    Module,
}

/// A style sheet without comments and indentation.
pub(super) fn style(source: &str) -> String {
    let (mut plain, mut rest) = (String::new(), source);
    while let Some((before, comment)) = rest.split_once("/*") {
        plain += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain += rest;
    plain.lines().map(str::trim).filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

/// A script with the module `first` and all its dependencies. `source` returns the text of a module. `later` is the address of the script with the
/// modules that are loaded later.
pub(super) fn script<'a>(first: &'a str, later: &str, source: impl Fn(&str) -> &'a str) -> String {
    // Some browsers cache the failure to load an address.
    let address = format!("\"{later}\"");
    let again = format!("import({address} + \"&again=\" + Date.now())");
    // Modules that are loaded later may use all texts, from their first line on.
    let load = format!(
        "const later = async name => (await modules[\"texts.js\"].loadLater(), await import({address}).catch(() => {again}), modules[name]);\n"
    );
    let load = if later.is_empty() { "" } else { &load };
    format!("const modules = globalThis.modules = {{}};\n{load}{}", linked_modules(&order(first, &source), source))
}

/// The script with the modules that the script of `first` loads later. Empty if it loads none.
pub(super) fn later<'a>(first: &'a str, source: impl Fn(&str) -> &'a str) -> String {
    let at_once = order(first, &source);
    let mut all = at_once.clone();
    let imported_later = |name: &&'a str| source(name).split(LATER).skip(1).filter_map(|rest| rest.split('\'').next());
    for name in at_once.iter().flat_map(imported_later) {
        add(name, &source, &mut all);
    }
    linked_modules(&all[at_once.len()..], source)
}

/// A module and all its dependencies, each after its own dependencies.
fn order<'a>(first: &'a str, source: &impl Fn(&str) -> &'a str) -> Vec<&'a str> {
    let mut order = Vec::new();
    add(first, source, &mut order);
    order
}

fn linked_modules<'a>(names: &[&str], source: impl Fn(&str) -> &'a str) -> String {
    let linked = |name: &&str| {
        if name.ends_with(".json") {
            return format!("modules[\"{name}\"] = {};\n", source(name));
        }
        let (body, exports) = module(source(name));
        format!("modules[\"{name}\"] = (() => {{\n{body}return {{ {} }};\n}})();\n", exports.join(", "))
    };
    names.iter().map(linked).collect()
}

/// Adds a module after its dependencies.
fn add<'a>(name: &'a str, source: &impl Fn(&str) -> &'a str, order: &mut Vec<&'a str>) {
    if order.contains(&name) {
        return;
    }
    for (_, imported) in source(name).lines().filter_map(import) {
        add(imported, source, order);
    }
    order.push(name);
}

/// The imported names of a line, and the module: `import { a, b as c } from './x.js';` is (`{ a, b as c }`, `x.js`).
fn import(line: &str) -> Option<(&str, &str)> {
    let (what, rest) = line.strip_prefix("import ")?.split_once(" from './")?;
    Some((what, rest.split('\'').next()?))
}

/// The text of a module without its imports and exports, and its exports as members of an object.
fn module(source: &str) -> (String, Vec<String>) {
    let (mut body, mut exports) = (String::new(), Vec::new());
    // Indentation has no meaning, except in a template literal of several lines.
    let may_have_long_texts = source.lines().any(|line| line.matches('`').count() % 2 == 1);
    for line in source.lines() {
        if let Some((what, from)) = import(line) {
            let names = what.strip_prefix("* as ").map_or_else(|| what.replace(" as ", ": "), str::to_owned);
            body += &format!("const {names} = modules[\"{from}\"];\n");
        } else if let Some(declaration) = line.strip_prefix("export ") {
            let words = declaration.strip_prefix("async ").unwrap_or(declaration);
            let name = words.split_once(' ').map_or("", |(_, rest)| rest);
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            exports.extend(name.split(|c: char| !is_part(c)).next().map(str::to_owned));
            body += &format!("{declaration}\n");
        } else if let Some((before, list)) = line.split_once("export{") {
            let renamed = list.trim_end_matches(['}', ';']).split(',').filter_map(|pair| pair.split_once(" as "));
            exports.extend(renamed.map(|(inner, outer)| format!("{outer}: {inner}")));
            body += &format!("{before}\n");
        } else if !line.trim_start().starts_with("//") {
            body += &if may_have_long_texts { line } else { line.trim_start() }.replace(LATER, "later('");
            body.push('\n');
        }
    }
    (body, exports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions_in_the_order_of_their_imports() {
        let source = |name: &str| match name {
            "main.js" => {
                "// The page.\nimport { twice, one as uno } from './numbers.js';\nimport * as words from './words.js';\nrun(twice(uno));\n"
            }
            "numbers.js" => {
                "import { zero } from './words.js';\nexport const one = zero + 1;\nexport async function twice(n) {\n  return 2 * n;\n}\n"
            }
            _ => "let z=0;export{z as zero};\n",
        };

        let script = script("main.js", "", source);

        let parts: Vec<_> = script.split("modules[\"").collect();
        assert!(
            script.starts_with("const modules = globalThis.modules = {};\nmodules[\"words.js\"] = (() => {\nlet z=0;\nreturn { zero: z };\n})();\n"),
            "{script}"
        );
        assert!(
            script.contains("const { zero } = modules[\"words.js\"];\nconst one = zero + 1;\nasync function twice(n) {"),
            "{script}"
        );
        assert!(script.contains("return { one, twice };"), "{script}");
        assert!(
            script.contains("const { twice, one: uno } = modules[\"numbers.js\"];\nconst words = modules[\"words.js\"];"),
            "{script}"
        );
        assert!(!script.contains("// The page.") && parts.len() == 7, "{script}");
    }

    #[test]
    fn what_is_imported_later_is_in_a_script_of_its_own() {
        let source = |name: &str| match name {
            "main.js" => "import { el } from './dom.js';\nconst open = async () => (await import('./dialog.js')).open(el);\n",
            "dialog.js" => "import { el } from './dom.js';\nimport { form } from './form.js';\nexport const open = form;\n",
            _ => "export const el = 1;\nexport const form = 2;\n",
        };

        let later = later("main.js", source);
        let script = script("main.js", "/page/later.js?v=1", source);

        let names = |text: &str| text.matches("modules[\"").count() - text.matches("= modules[\"").count();
        assert!(later.starts_with("modules[\"form.js\"] = (() => {") && later.contains("modules[\"dialog.js\"] = "), "{later}");
        assert!(
            script.contains("import(\"/page/later.js?v=1\").catch(") && script.contains("(await later('dialog.js')).open(el)")
        );
        // The texts for them are there before them.
        assert!(script.contains("(await modules[\"texts.js\"].loadLater(), await import("), "{script}");
        assert_eq!((names(&later), names(&script)), (2, 3), "{script}");
        assert_eq!(super::later("dom.js", source), "");
    }

    #[test]
    fn links_of_a_page_are_found() {
        assert_eq!(linked("<link rel=\"stylesheet\" href=\"/page/base.css\">"), Some((Kind::Style, "base.css")));
        assert_eq!(linked("<script type=\"module\" src=\"/page/main.js\"></script>"), Some((Kind::Module, "main.js")));
        assert_eq!(linked("<script src=\"/page/theme.js\"></script>"), None);
    }
}
